"""The wording of messages, all in one file: ``samples/messages.txt``. Tests name the type of an error; this holds what it says.

Whoever changes a message on purpose writes the file anew with ``WRITE_MESSAGES=1 pytest -n 0 FILES`` and reads the difference.
Temporary folders, addresses and all but the first of the valid names, which grow, are left out of it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "samples" / "messages.txt"
_WRITES = "WRITE_MESSAGES" in os.environ
_ROOT = re.escape(str(Path(tempfile.gettempdir()).resolve()))
_FOLDER = re.compile(_ROOT + r"/pytest-of-[^/\s]+/pytest-\d+/(?:popen-gw\d+/)?[^/\s'\":;,)]+")
_LISTED = re.compile(r"(one of:? [^\s,]+, )(?:[^\s,;]+, ){2,}(?:or )?[^\s,;]+?(?=[.;,)]*(?:\s|$))")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_seen: dict[str, set[str]] = defaultdict(set)


@contextmanager
def refused(kind: type[Exception] | tuple[type[Exception], ...], *parameters: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """An error of that kind, which speaks of these ``parameters``, in the words that the file has for this test."""
    with pytest.raises(kind) as raised:
        yield raised
    error = raised.value
    for name in parameters:
        assert name in getattr(error, "parameters", ()), f"{name}: {error}"
    held(f"{type(error).__name__}: {error}")


def held(message: str) -> None:
    """That the file has this message for the test that runs."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0]
    plain = _LISTED.sub(r"\1...", _ADDRESS.sub("0x...", _FOLDER.sub("TMP", message)))
    text = json.dumps(plain, ensure_ascii=False)[1:-1].replace('\\"', '"')
    _seen[test].add(text)
    if not _WRITES:
        known = _messages().get(test, ())
        assert text in known, f"{text}\nis not what {FILE.name} says for {test}: {known}"


@cache
def _messages() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    test = ""
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        if line.startswith("  "):
            found[test].append(line[2:])
        elif line:
            test = line
            found[test] = []
    return found


if _WRITES:

    @atexit.register
    def _write() -> None:
        merged = _messages() | {test: sorted(texts) for test, texts in _seen.items()}
        text = "\n".join("\n".join([test, *(f"  {one}" for one in merged[test])]) for test in sorted(merged))
        FILE.write_text(f"{text}\n", encoding="utf-8")

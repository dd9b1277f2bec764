"""The wording of messages, all in one file: ``samples/messages.txt``. Tests name the type of an error; this holds what it says.

Whoever changes a message on purpose writes the file anew with ``WRITE_MESSAGES=1 pytest -n 0 FILES`` and reads the difference.
What differs from run to run, all but the first of the valid names, which grow, and what other packages say of an error are left
out of it.
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
from dis import opname
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from gnothi import errors

FILE = Path(__file__).parent / "samples" / "messages.txt"
_E = TypeVar("_E", bound=BaseException)
_WRITES = "WRITE_MESSAGES" in os.environ
FOLDERS: set[Path] = set()
"""Where pytest makes the tests' temporary folders (``--basetemp``)."""
_MASKS = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (re.escape(tempfile.gettempdir()) + r"/gnothi-[^/\s'\":;,)`]+", "TMP"),
        (r"\(in [^()]+, line [\d.]+\)", "(in FILE, line N)"),
        (r"\b0x[0-9a-f]{6,}\b", "0x..."),
        # Fingerprints, and the names of an index's files.
        (r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{32})\b", "..."),
        (r"(?<=127\.0\.0\.1:)\d{5}\b", "PORT"),
        (r"(?<=made by Gnothi )[\d.]*\d|(?<=expected )[\d.]*\d(?= as here)", "..."),
        (r"(?<=did not answer for )\d+(?= s)", "..."),
        (r" It is held by process \d+[^.]*\.", ""),  # not every system tells
        # What Python says of JSON, TOML and UTF-8 that it cannot read.
        (r"[A-Z][^:;.(]*: line \d+ column \d+ \(char \d+\)|Expecting [a-z ]+(?= at column)", "..."),
        (r"[A-Z][^:;.]* \(at (?:line \d+, column \d+|end of document)\)|'utf-8' codec can't [^:;.]*: [a-z ]+", "..."),
        (r"(one of:? [^\s,]+, )(?:[^\s,;]+, ){2,}(?:or )?[^\s,;]+?(?=[.;,)]*(?:\s|$))", r"\1..."),
    )
]
_OURS = (str(Path(errors.__file__).parent), *(str(Path(__file__).parents[1] / one) for one in ("tests", "benchmarks", "tools")))
_seen: dict[str, set[str]] = defaultdict(set)


@contextmanager
def refused(kind: type[_E] | tuple[type[_E], ...], *parameters: str, varies: str = "$^") -> Iterator[pytest.ExceptionInfo[_E]]:
    """An error of that kind, which speaks of these ``parameters``, in the words that the file has for this test.

    ``varies``, a pattern, is what is left out of them: a number that was measured, the words of another package."""
    with pytest.raises(kind) as raised:
        yield raised
    message = re.sub(varies, "...", _message(raised.value, parameters))
    del raised  # the error's traceback holds this frame: what the error holds would stay open until a collection
    held(message)


def _message(error: BaseException, parameters: tuple[str, ...]) -> str:
    for name in parameters:
        assert name in getattr(error, "parameters", ()), f"{name}: {error}"
    text = str(error)
    for one in filter(_foreign, _causes(error)):
        whole = str(one)
        for said in (whole, " ".join(whole.split()), whole.partition("\n")[0], getattr(one, "msg", "")):
            if len(said) > 8:  # shorter ones may be words of ours as well
                text = text.replace(said.rstrip(". "), "...")
    return f"{type(error).__name__}: {text}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    while cause := error.__cause__ or error.__context__:
        yield cause
        error = cause


def _foreign(error: BaseException) -> bool:
    """That its words are not ours: no ``raise`` of this project made it, but another package or Python itself."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if isinstance(error, errors.GnothiError | KeyError) or trace is None:
        return False
    code = trace.tb_frame.f_code
    return not code.co_filename.startswith(_OURS) or opname[code.co_code[trace.tb_lasti]] != "RAISE_VARARGS"


def complained(outcome: tuple[int, str, str], code: int = 2) -> None:
    """That a command ended so, wrote nothing but to standard error, and there what the file has for this test."""
    assert outcome[:2] == (code, ""), outcome
    text = " ".join(outcome[2].split())
    usage, _, said = text.partition(" Error: ")
    if usage.startswith("Usage: "):  # typer's own words but where they say what was expected: of those what is quoted
        text = said if "expected " in said else " ".join(["Error:", *re.findall(r"'[^']*'", said)])
    held(text)


def held(message: str) -> None:
    """That the file has this message for the test that runs."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0]
    for folder in FOLDERS:
        message = re.sub(re.escape(str(folder)) + r"/[^/\s'\":;,)`]+", "TMP", message)
    for mask, instead in _MASKS:
        message = mask.sub(instead, message)
    text = json.dumps(message, ensure_ascii=False)[1:-1].replace('\\"', '"')
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

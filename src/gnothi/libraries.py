"""Libraries that are loaded, and what they say of a model that they load, or cannot."""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_MOST_LISTED = 3
"""Of many names."""
_MISSING = re.compile(r"^(\S.*?) +\| MIS(?:SING|MATCH)", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_LINE = 300
"""Characters of a line of a library's message."""


def reason(error: Exception) -> str:
    """Why a library could not load a model: the first and the last line of its message, each of bounded length. The first often
    says no more than that something failed, and the last what it was."""
    if "trust_remote_code" in str(error):
        return (
            "it comes with Python code of its own (auto_map in its config.json), which is never run: trust_remote_code is off."
        )
    plain = _COLOURS.sub("", str(error))
    lines = [" ".join(line.split()) for line in plain.splitlines() if any(map(str.isalnum, line))]
    bounded = [
        line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
        for line in lines
    ]
    return " ".join(dict.fromkeys((*bounded[:1], *bounded[-1:]))) or type(error).__name__


@contextmanager
def sleeping_threads() -> Iterator[None]:
    """Where torch is imported inside, its threads sleep while they wait for each other. Awake they are no faster, and take two
    to three times the processor's time where others use it, too. What a user has set stays; afterwards the environment is as
    before."""
    if "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]


def cache_argument(model: Any) -> str | None:
    """What a model's ``forward`` calls the cache that it is given: transformers 5.24 renamed it. None: it takes none."""
    accepted = inspect.signature(model.forward).parameters
    return next((name for name in ("cache", "past_key_values", "cache_params") if name in accepted), None)


@contextmanager
def reports() -> Iterator[list[str]]:
    """While transformers loads a model: its reports of weights that it did not find, instead of printing them."""
    messages: list[str] = []
    log = logging.getLogger("transformers.modeling_utils")
    level, usual = log.level, log.getEffectiveLevel()

    def keep(record: logging.LogRecord) -> bool:
        if report := "LOAD REPORT" in record.getMessage():
            messages.append(record.getMessage())
        return not report and record.levelno >= usual

    log.setLevel(logging.INFO)  # whatever a program has told the library to say
    log.addFilter(keep)
    try:
        yield messages
    finally:
        log.removeFilter(keep)
        log.setLevel(level)


def check_found(messages: Iterable[str], unneeded: str) -> None:
    """Raise ValueError for weights that ``reports`` name as missing, or in another shape, but for those whose names hold
    ``unneeded`` (a regular expression): they would be random numbers."""
    names = sorted(name for report in messages for name in _MISSING.findall(report) if not re.search(unneeded, name))
    if names:
        raise ValueError(f"its files lack {listed(names)}, in whose place the library would put random numbers.")


def listed(names: list[str]) -> str:
    """The first of many, and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")

"""From what a user names (a data set, a file) to a list of questions.

This package knows file formats. Data sets that have a name and no file, such as the laboratory's, live above it and are
handed in by the caller as ``named``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from gnothi.datasets import (
    commonsenseqa,
    generic,
    hotpotqa,
    medqa,
    nq_open,
    openbookqa,
    selfaware,
    strategyqa,
    triviaqa,
    truthfulqa,
    two_wiki,
)
from gnothi.datasets.records import Format, Record, read_records
from gnothi.datasets.tables import read_table
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.types import Question

Loader = Callable[[], Iterable[Question]]

# In the order in which they are asked whether they recognise a file: the most particular first.
FORMATS: Mapping[str, Format] = {
    format.name: format
    for format in (
        two_wiki.FORMAT,
        hotpotqa.FORMAT,
        strategyqa.FORMAT,
        nq_open.FORMAT,
        triviaqa.FORMAT,
        selfaware.FORMAT,
        truthfulqa.FORMAT,
        commonsenseqa.FORMAT,
        openbookqa.FORMAT,
        medqa.FORMAT,
        generic.FORMAT,
    )
}

_JSON = (".json", ".jsonl")


def load(
    source: str, format: str | None = None, limit: int | None = None, named: Mapping[str, Loader] | None = None
) -> list[Question]:
    """The first ``limit`` questions of a named data set or of a file, in their order.

    Raises UnknownName for a name or format that does not exist, InvalidInput (with file and line) for anything unusable.
    """
    if limit is not None and limit < 1:
        raise InvalidSetting(f"limit: got {limit}, expected at least 1 (leave it out for all questions).")
    named = named or {}
    if source in named:
        if format is not None:
            raise InvalidSetting(
                f"format: got {format!r} for the data set {source!r}, expected none: only files have a format."
            )
        questions: Iterable[Question] = named[source]()
    else:
        questions = _from_file(_existing(source, named), format)
    found = list(islice(questions, limit))
    if not found:
        raise InvalidInput(f"{source} holds no questions; expected at least one.")
    return found


def _existing(source: str, named: Mapping[str, Loader]) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        raise InvalidInput(f"got the folder {source}, expected a file of questions or a data set: {', '.join(sorted(named))}.")
    if not path.suffix and os.sep not in source:
        raise UnknownName("data set", source, [*named, "a file of questions"])
    raise InvalidInput(
        f"there is no file {source}; expected a file of questions or a data set: {', '.join(sorted(named)) or '(none)'}."
    )


def _from_file(path: Path, format: str | None) -> Iterator[Question]:
    if format is not None and format not in FORMATS:
        raise UnknownName("data set format", format, FORMATS)
    chosen = FORMATS[format] if format is not None else None
    seen: dict[str, str] = {}
    for record in _records(path, chosen):
        chosen = chosen or _recognised(record)
        question = chosen.question(record)
        if question.id in seen:
            raise InvalidInput(
                f"{record.place}: got the id {question.id!r} again (first at {seen[question.id]}), expected ids to be unique."
            )
        seen[question.id] = record.place
        yield question


def _records(path: Path, chosen: Format | None) -> Iterator[Record]:
    """A table where the file's name or the format that was named says so, else JSON."""
    suffix = path.suffix.lower()
    if suffix == ".csv" or (chosen is not None and chosen.table and suffix not in _JSON):
        return read_table(path)
    return read_records(path, [format.container for format in FORMATS.values() if format.container])


def _recognised(first: Record) -> Format:
    for format in FORMATS.values():
        if format.recognises(first.data):
            return format
    shapes = "; ".join(f"{format.name}: {format.summary}" for format in FORMATS.values())
    keys = ", ".join(first.data) or "(none)"
    raise InvalidInput(
        f"{first.place}: the format is not recognised: got the keys {keys:.200}. Name it with --format; known: {shapes}."
    )

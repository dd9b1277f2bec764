"""From what a user names (a data set, a file) to a list of questions."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from gnothi.datasets.formats import generic
from gnothi.datasets.named import DataSet, as_data_set
from gnothi.datasets.packed import bare_name
from gnothi.datasets.records import Format, Record, read_records
from gnothi.datasets.tables import TABLES, read_table
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.files import meant
from gnothi.registry import Entry, Registry
from gnothi.types import Question

DATASETS: Registry[DataSet | Callable[[str, int | None], Iterable[Question]]] = Registry(
    "data set",
    "gnothi.datasets",
    also={
        "lab": "gnothi.lab.named:QUESTIONS",
        "lab-train": "gnothi.lab.named:TRAINING",
        "csqa-inhouse": "gnothi.datasets.inhouse:QUESTIONS",
    },
)
FORMATS: Registry[Format] = Registry("data set format", "gnothi.formats", home="gnothi.datasets.formats", attribute="FORMAT")

_JSON = (".json", ".jsonl")


def file_formats() -> Mapping[str, Format]:
    """Formats of files by name, the most particular first."""
    return {format.name: format for _, format in _formats()}


def load(source: str, format: str | None = None, limit: int | None = None, answered: bool = True) -> list[Question]:
    """The first ``limit`` questions of a named data set or of a file, in their order. ``answered`` False: a record that has a
    question and says nothing of answers has none.

    Raises UnknownName for a name or format that does not exist, InvalidInput (with file and line) for anything unusable.
    """
    if limit is not None and limit < 1:
        raise InvalidSetting(f"limit: got {limit}, expected at least 1 (leave it out for all questions).")
    name, _, argument = source.partition(":")
    if name in DATASETS:
        if format is not None:
            raise InvalidSetting(
                f"format: got {format!r} for the data set {source!r}, expected none: only files have a format."
            )
        questions = as_data_set(DATASETS.find(name)).open(argument, limit)
    else:
        questions = _from_file(_existing(source), format, answered)
    found = list(islice(questions, limit))
    if not found:
        raise InvalidInput(f"{source} holds no questions; expected at least one.")
    return found


def is_named(source: str) -> bool:
    """Whether it is the name of a data set, with or without an argument, and so no file."""
    return source.partition(":")[0] in DATASETS


def data_sets() -> dict[str, tuple[str, str]]:
    """Named data sets and their parts, each with a line about it and the distribution that brings it."""
    found: dict[str, tuple[str, str]] = {}
    for entry, thing in DATASETS.items():
        one = as_data_set(thing)
        found[entry.name] = (one.summary, entry.origin)
        found |= {f"{entry.name}:{part}": (summary, entry.origin) for part, summary in one.parts.items()}
    return found


def formats_listed() -> dict[str, tuple[str, str]]:
    """Formats of files, each with a line about it and the distribution that brings it."""
    return {format.name: (format.summary, entry.origin) for entry, format in _formats()}


def _formats() -> list[tuple[Entry, Format]]:
    return sorted(FORMATS.items(), key=lambda pair: -pair[1].particular)


def _existing(source: str) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    names = ", ".join(DATASETS.names())
    if path.is_dir():
        raise InvalidInput(f"got the folder {source}, expected a file of questions or a data set: {names}.")
    if not path.suffix and os.sep not in source:
        near = meant(source)
        if near and not difflib.get_close_matches(source, DATASETS.names(), n=1):
            raise InvalidInput(f"unknown data set: got {source!r}, and there is no such file. {near}Expected one of: {names}.")
        raise UnknownName("data set", source, [*DATASETS.names(), "a file of questions"])
    raise InvalidInput(f"there is no file {source}. {meant(source)}Expected a file of questions or a data set: {names}.")


def _from_file(path: Path, format: str | None, answered: bool) -> Iterator[Question]:
    known = file_formats()
    if format is not None and format not in known:
        raise UnknownName("data set format", format, known)
    name = bare_name(path)
    chosen = known[format] if format is not None else None
    chosen = chosen or next((one for one in known.values() if one.ending and name.endswith(one.ending)), None)
    completed: Callable[[Record], Record] | None = None
    seen: dict[str, str] = {}
    for record in _records(path, chosen, known):
        if not answered:
            record = generic.unanswered(record)
        chosen = chosen or _recognised(record, known)
        if chosen.beside is not None and completed is None:
            completed = chosen.beside(path)
        for one in chosen.records(record if completed is None else completed(record)):
            question = chosen.question(one)
            if question.id in seen:
                raise InvalidInput(
                    f"{one.place}: got the id {question.id!r} again (first at {seen[question.id]}), expected ids to be unique."
                )
            seen[question.id] = one.place
            yield question


def _records(path: Path, chosen: Format | None, known: Mapping[str, Format]) -> Iterator[Record]:
    """A table where the file's name or the format that was named says so, else JSON."""
    name = bare_name(path)
    if chosen is not None and chosen.columns and not name.endswith(_JSON):
        return read_table(path, chosen.columns)
    if name.endswith(TABLES) or (chosen is not None and chosen.table and not name.endswith(_JSON)):
        return read_table(path)
    return read_records(path, [format.container for format in known.values() if format.container])


def _recognised(first: Record, known: Mapping[str, Format]) -> Format:
    fitting = [format for format in known.values() if format.recognises(first.data)]
    best = [format for format in fitting if format.particular == fitting[0].particular]
    if len(best) == 1:
        return best[0]
    if best:
        names = " and ".join(format.name for format in best)
        raise InvalidInput(f"{first.place}: the record fits several formats: {names}. Name one with <--format>.")
    shapes = "; ".join(f"{format.name}: {format.summary}" for format in known.values())
    keys = ", ".join(first.data) or "(none)"
    raise InvalidInput(
        f"{first.place}: the format is not recognised: got the keys {keys:.200}. Name it with <--format>; known: {shapes}."
    )

"""JSON Lines: a record a line, in one of the shapes of ``corpora``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import START, Checkpoint, Step
from gnothi.retrieval.ingest.corpora import AS_FOUND, Given, Keys, steps
from gnothi.retrieval.ingest.lines import lines, parse_json


def read(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:
    """A line without an id gets ``key#line number``."""
    first = next((one.record for one in _records(path, START) if not one.problem), None)
    yield from steps(path, _records(path, start), first, key, words, keys)


def _records(path: Path, start: Checkpoint) -> Iterator[Given]:
    for line in lines(path, start):
        record, problem = None, line.problem
        try:
            record = parse_json(line.text) if line.text is not None else None
        except ValueError as error:
            problem = str(error)
        yield Given(record, line.number, problem, line.checkpoint, line.read)

"""The tab-separated format of DPR's Wikipedia passages: a header ``id text title``, then a passage a line, quoted or not."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.base import Checkpoint, Step, record_step
from gnothi.retrieval.ingest.jsonl import LONGEST_ID
from gnothi.retrieval.ingest.lines import LONGEST_LINE, lines
from gnothi.types import Passage

_NAMES = ("id", "text", "title")


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - every row has an id
    """Columns are found by the header's names, in any order; ``title`` may be missing. Raises InvalidInput without a header."""
    columns = _header(path)
    for text, problem, place in lines(path, start):
        if place.line == 1:
            continue
        if text is None:
            yield Step(checkpoint=place, invalid=problem, read=place.offset)
            continue
        row = _fields(text, len(columns))
        if len(row) != len(columns):
            problem = f"got {len(row)} tab-separated fields, expected {len(columns)} ({', '.join(columns)})"
        elif not 1 <= len(row[columns.index("id")].strip()) <= LONGEST_ID:
            problem = f"its id has {len(row[columns.index('id')].strip())} characters, expected 1 to {LONGEST_ID}"
        if problem:
            yield Step(checkpoint=place, invalid=problem, read=place.offset)
            continue
        fields = dict(zip(columns, row, strict=True))
        yield record_step(Passage(fields["id"].strip(), fields["text"], fields.get("title", "")), words, place)


def _header(path: Path) -> list[str]:
    first = next(lines(path, Checkpoint()), (None, "", Checkpoint()))
    columns = [name.strip().lower() for name in _fields(first[0] or "", 0)]
    if first[2].line != 1 or "id" not in columns or "text" not in columns:
        got = repr((first[0] or "")[:60])
        raise InvalidInput(
            f"{path}, line 1: got {got}, expected a header that names the tab-separated columns {', '.join(_NAMES)}. "
            "Add the header as the first line."
        )
    return columns


def _fields(line: str, expected: int) -> list[str]:
    """Quoted fields as in CSV; a line that is no valid CSV (a stray quote) is cut at its tabs."""
    csv.field_size_limit(LONGEST_LINE)
    try:
        row = next(csv.reader([line], delimiter="\t", strict=True))
    except csv.Error:
        return line.split("\t")
    return row if len(row) == expected or not expected else line.split("\t")

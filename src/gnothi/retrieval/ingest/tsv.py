"""The tab-separated format of DPR's Wikipedia passages: a header ``id text title``, then a passage a line, quoted or not.
Further named columns are metadata."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from gnothi.retrieval.ingest.base import START, Checkpoint, Step, Unreadable
from gnothi.retrieval.ingest.corpora import check_id
from gnothi.retrieval.ingest.lines import LONGEST_LINE, lines, record_steps
from gnothi.types import Passage

_NAMES = ("id", "text", "title")


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - every row has an id
    """Columns are found by the header's names, in any order; ``title`` may be missing. Raises Unreadable without a header."""
    columns = _header(path)
    rows = (line for line in lines(path, start) if line.number > 1)
    yield from record_steps(rows, words, lambda _, text: _passage(text, columns))


def _passage(text: str, columns: Sequence[str]) -> Passage:
    row = _fields(text, len(columns))
    if len(row) != len(columns):
        raise ValueError(f"got {len(row)} tab-separated fields, expected {len(columns)} ({', '.join(columns)})")
    fields = dict(zip(columns, row, strict=True))
    metadata = {name: value for name, value in fields.items() if name and value and name not in _NAMES}
    return Passage(check_id(fields["id"].strip()), fields["text"], fields.get("title", ""), metadata)


def _header(path: Path) -> list[str]:
    first = next(lines(path, START), None)
    text = first.text or "" if first and first.number == 1 else ""
    columns = [name.strip().lower() for name in _fields(text, 0)]
    if "id" not in columns or "text" not in columns:
        raise Unreadable(
            f"{path}, line 1: got {text[:60]!r}, expected a header that names the tab-separated columns {', '.join(_NAMES)}. "
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

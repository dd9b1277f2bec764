"""CSV and TSV. With a column that is known as the text (DPR's passages: ``id text title``), or that the user names, a row is a
record of a collection; else the file is a table, of which each row is a passage.

Separators are commas, semicolons, tabs or bars, found by the first rows; quoted fields may hold line breaks.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest.base import START, Block, Checkpoint, Step, Unreadable, document_steps
from gnothi.retrieval.ingest.corpora import AS_FOUND, TEXTS, Keys, ReadRecord, steps
from gnothi.retrieval.ingest.encoding import chunks, detect
from gnothi.retrieval.ingest.json_file import LONGEST_LINE, Line, lines
from gnothi.retrieval.ingest.outline import Outline
from gnothi.retrieval.ingest.tables import MOST_COLUMNS, Cell, Table

_SEPARATORS = ",;\t|"
_SAMPLE = 20  # rows
_LONGEST_RECORD = 1 << 20  # characters of a row over several lines; a quote that is open for longer is a stray one
_EXCEL = re.compile(r"\"?sep=.\"?", re.IGNORECASE)  # a first line by which Excel is told the separator
_CHECKED = 64 << 20  # bytes: a larger file is UTF-8 unless it has a mark

Row = tuple[list[str], Line]
"""Fields, and the last line they stand in."""


def read(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:
    """Columns are found by the header's names, in any order. Raises Unreadable for a file without a row."""
    csv.field_size_limit(LONGEST_LINE)
    encoding = ""
    if path.suffix.lower() != ".gz":
        detected = detect(path, sample=_CHECKED)
        encoding = "" if detected.name in ("utf-8", "utf-8-sig") else detected.name
        if detected.notice:
            yield Step(notice=detected.notice)
    sample = list(islice(_lines(path, START, encoding), _SAMPLE))
    if not encoding and path.suffix.lower() != ".gz" and any("\r" in (line.text or "") for line in sample[:1]):
        encoding = "utf-8"  # lines that end as on old Macintoshes, which only ``chunks`` knows
        sample = list(islice(_lines(path, START, encoding), _SAMPLE))
    separator = _separator([line.text or "" for line in sample])
    head = next(_rows(iter(sample), separator, 0), None)
    if head is None:
        yield Step(notice="holds no text", empty=True)
        return
    columns = [name.strip() for name in head[0]]
    known = {name.lower() for name in columns}
    if known & set(TEXTS) or (keys.text and keys.text.lower() in known):
        columns = [name.lower() if name.lower() in (*TEXTS, "id", "_id", "title") else name for name in columns]
        begin = start if not encoding else START
        rows = _rows(_lines(path, begin, encoding), separator, len(columns))
        records = (_record(row, columns, bool(encoding)) for row in (rows if begin != START else islice(rows, 1, None)))
        first = next(iter(_firsts(path, encoding, separator, columns)), None)
        yield from steps(path, records, first, key, words, keys)
    elif keys.text:
        raise Unreadable(f"{path} has no column {keys.text!r} (it has {', '.join(columns)[:200]}). Name one with <--text-key>.")
    else:
        yield from document_steps(_table(path, _rows(_lines(path, START, encoding), separator, 0)), key, words)


def _table(path: Path, rows: Iterable[Row]) -> Iterator[Block]:
    outline, table, last = Outline(path.stem), Table(spreadsheet=True), 0
    for fields, line in rows:
        if line.number > last + 1 + sum(field.count("\n") for field in fields):  # a blank line
            yield from outline.row_blocks(table, table.add([]))
        last = line.number
        if line.problem:
            yield outline.notice(f", line {line.number}: {line.problem}; it is left out")
        yield from outline.row_blocks(table, table.add([Cell(field) for field in fields[:MOST_COLUMNS]]), line.read)
    yield from outline.row_blocks(table, table.end())
    if table.unsure:
        yield outline.notice(f"is read with its first row as the names of columns: {', '.join(table.unsure)[:100]}")
    if table.twice:
        yield outline.notice(f"is read without names of columns, since its first row has {table.twice!r:.60} twice")


def _firsts(path: Path, encoding: str, separator: str, columns: list[str]) -> Iterator[object]:
    """The first record, also where reading goes on in the middle."""
    for row in islice(_rows(_lines(path, START, encoding), separator, len(columns)), 1, 2):
        yield _record(row, columns, False).record or dict.fromkeys(columns, "x")
    yield dict.fromkeys(columns, "x")


def _record(row: Row, columns: list[str], whole: bool) -> ReadRecord:
    fields, line = row
    problem = line.problem
    while len(fields) > len(columns) and not fields[-1]:
        fields.pop()  # spreadsheets keep empty columns
    if not problem and len(fields) != len(columns):
        problem = f"got {len(fields)} field{'s' * (len(fields) != 1)}, expected {len(columns)} ({', '.join(columns)})"
    fields_by_name = {name: value for name, value in zip(columns, fields, strict=False) if name}
    for name in ("id", "_id"):
        if name in fields_by_name:
            fields_by_name[name] = fields_by_name[name].strip()
    return ReadRecord(None if problem else fields_by_name, line.number, problem, None if whole else line.checkpoint, line.read)


def _lines(path: Path, start: Checkpoint, encoding: str) -> Iterator[Line]:
    found = _decoded(path, encoding) if encoding else lines(path, start)
    return (line for line in found if line.number > 1 or not _EXCEL.fullmatch(line.text or ""))


def _decoded(path: Path, encoding: str) -> Iterator[Line]:
    held, number = "", 0
    for text, read in chunks(path, encoding):
        *whole, held = (held + text).split("\n")
        for line in whole:
            number += 1
            if line.strip():
                yield Line(line.removeprefix("\ufeff"), "", number, 0, read)
    if held.strip():
        yield Line(held, "", number + 1, 0, path.stat().st_size)


def _rows(lines: Iterator[Line], separator: str, expected: int) -> Iterator[Row]:
    """Rows, over several lines where a quoted field is. A quote that never ends, or ends where no field does, is text."""
    waiting: deque[Line] = deque()
    longest = _LONGEST_RECORD
    while True:
        first = waiting.popleft() if waiting else next(lines, None)
        if first is None:
            return
        if first.text is None:
            yield [], first
            continue
        taken = [first]
        row = _strict(_taking(first, waiting, lines, taken, longest), separator)
        if row is None or (expected and len(row) != expected):
            waiting.extendleft(reversed(taken[1:]))
            if len(taken) > 1:
                longest //= 2  # so that a file of stray quotes takes no longer
            taken = [first]
            alone = first.text.split(separator)
            row = alone if row is None or len(alone) == expected else row if len(taken) == 1 and row else alone
        yield row, taken[-1]


def _taking(first: Line, waiting: deque[Line], lines: Iterator[Line], taken: list[Line], longest: int) -> Iterator[str]:
    """Lines for the csv module, which asks for more of them while a quoted field is open."""
    yield f"{first.text}\n"
    size = 0
    while size < longest:
        line = waiting.popleft() if waiting else next(lines, None)
        if line is None or line.text is None:
            if line:
                waiting.appendleft(line)
            return
        taken.append(line)
        size += len(line.text)
        # Lines that are blank are not given, but in a field they are part of the text.
        yield "\n" * (line.number - taken[-2].number - 1) + f"{line.text}\n"


def _strict(lines: Iterator[str], separator: str) -> list[str] | None:
    try:
        return next(csv.reader(lines, delimiter=separator, strict=True), None)
    except csv.Error:
        return None


def _separator(sample: list[str]) -> str:
    """The one by which most rows have the same number of fields, then the one with the most fields."""

    def even(separator: str) -> tuple[int, int]:
        lines = (f"{line}\n".replace("\r", " ") for line in sample)
        numbers = Counter(len(row) for row in csv.reader(lines, delimiter=separator))
        fields, rows = max(numbers.items(), key=lambda count: (count[0] > 1, count[1]), default=(1, 0))
        return (rows, fields) if fields > 1 else (0, 0)

    first = next(iter(sample), "")
    if "\t" in first and len(first.split("\t")) > 1 and not any(mark in first for mark in ",;|"):
        return "\t"
    return max(_SEPARATORS, key=even)


# Parquet (``pip install 'gnothi[parquet]'``): a record a row, as the hub keeps its collections.

_ROWS = 200


def read_parquet(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:  # noqa: ARG001
    """A row without an id gets ``key#number``."""
    records = _records(path)
    first = next(records, None)
    if first is not None:
        yield from steps(path, chain([first], records), first.record, key, words, keys)


def _records(path: Path) -> Iterator[ReadRecord]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingDependency("pyarrow", "parquet", f"reading {path}") from None
    size = path.stat().st_size
    number = 0
    try:
        with ParquetFile(path) as file:
            count = file.metadata.num_rows
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield ReadRecord(row, number, read=size * number // max(count, 1))
    except pyarrow.ArrowException as error:
        raise Unreadable(f"{path} is not a Parquet file that can be read: {error}. Fetch it again.") from None

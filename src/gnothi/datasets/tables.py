"""Records of a table: CSV as spreadsheets write it (RFC 4180, commas, semicolons, tabs or bars) with a first line that names
the columns, or Parquet."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from gnothi.datasets.records import Record, bare_name, opened, unreadable
from gnothi.errors import InvalidInput, MissingDependency

TABLES = (".csv", ".tsv")
PARQUET = ".parquet"
_DELIMITERS = ",;\t|"
_LONGEST_CELL = 1 << 24
_EXCEL = "sep="  # a first line by which Excel is told the delimiter


def read_table(
    path: Path, columns: Sequence[str] = (), fits: Callable[[Mapping[str, Any]], bool] = lambda _: False
) -> Iterator[Record]:
    """Each row, lazily; its number counts rows, its place names the line it begins in. Blank lines are skipped. ``columns`` are
    those of a table of tabs that has no header, whose cells may hold stray quotes.

    What stands between two cells is what makes columns that ``fits`` knows; else what the file's name says.
    Raises InvalidInput for a file that cannot be read, bytes that are not UTF-8, broken quoting and rows of another length than
    the header.
    """
    try:
        with opened(path) as file:
            lines = _decoded(path, file)
            delimiter = "\t" if columns or bare_name(path).endswith(".tsv") else ","
            before = 0
            if not columns:
                first = next(lines, "")
                if first.lower().startswith(_EXCEL) and len(first.strip()) == len(_EXCEL) + 1:
                    delimiter, before = first.strip()[-1], 1
                else:
                    delimiter = _delimiter(first, delimiter, fits)
                    lines = chain([first], lines)
            csv.field_size_limit(_LONGEST_CELL)
            reader = csv.reader(lines, delimiter=delimiter, strict=not columns)
            header = list(columns) or None
            number, line = 0, 1 + before
            for row in _rows(path, reader):
                place, line = f"{path}, line {line}", reader.line_num + 1 + before
                if not any(row):
                    continue
                if header is None:
                    header = _header(place, row)
                    continue
                while len(row) > len(header) and not row[-1]:
                    row.pop()  # spreadsheets keep empty columns
                if len(row) != len(header):
                    several, headed = "s" * (len(row) != 1), "" if columns else " as in the header"
                    raise InvalidInput(
                        f"{place}: got {len(row)} field{several}, expected {len(header)}{headed}. "
                        f"Text with {_NAMES.get(delimiter, repr(delimiter))} or line ends goes in double quotes."
                    )
                number += 1
                yield Record(dict(zip(header, row, strict=True)), place, number, True)
    except OSError as error:
        raise unreadable(path, error) from error


_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def read_parquet(path: Path) -> Iterator[Record]:
    """Each row of a Parquet file, lazily. Raises InvalidInput for what is none, MissingDependency."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "parquet", f"reading {path}") from error
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(row, f"{path}, row {number}", number)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a Parquet file that can be read: {error}. Fetch it again.") from None


def _delimiter(first: str, usual: str, fits: Callable[[Mapping[str, Any]], bool]) -> str:
    for delimiter in sorted(_DELIMITERS, key=lambda one: one != usual):
        try:
            names = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > 1 and fits({name.strip(): "" for name in names}):
            return delimiter
    # None gives columns of known names: the one that is in the line most often, if the usual one is not there.
    return usual if usual in first else max(_DELIMITERS, key=first.count) if any(map(first.count, _DELIMITERS)) else usual


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{path}, line {number}: got bytes that are not UTF-8 text, expected a table in UTF-8. A spreadsheet saves it "
                "as 'CSV UTF-8'; iconv -f windows-1252 -t utf-8 converts it where it is in that encoding."
            ) from None


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        line = getattr(reader, "line_num", "?")
        raise InvalidInput(f"{path}, line {line}: got a broken row ({error}), expected comma-separated values.") from None


def _header(place: str, row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    while names and not names[-1]:
        names.pop()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"{place}: got the column {twice[0]!r} twice, expected columns of different names.")
    return names

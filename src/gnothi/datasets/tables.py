"""Records of a table: values separated by commas or tabs (RFC 4180), with a first line that names the columns."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gnothi.datasets.packed import bare_name, opened
from gnothi.datasets.records import Record, unreadable
from gnothi.errors import InvalidInput

TABLES = (".csv", ".tsv")


def read_table(path: Path, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Each row, lazily; its number counts rows, its place names the line it begins in. Blank lines are skipped. ``columns`` are
    those of a table of tabs that has no header, whose cells may hold stray quotes.

    Raises InvalidInput for a file that cannot be read, bytes that are not UTF-8, broken quoting and rows of another length than
    the header.
    """
    try:
        with opened(path) as file:
            tabs = bool(columns) or bare_name(path).endswith(".tsv")
            reader = csv.reader(_decoded(path, file), delimiter="\t" if tabs else ",", strict=not columns)
            header = list(columns) or None
            number, line = 0, 1
            for row in _rows(path, reader):
                place, line = f"{path}, line {line}", reader.line_num + 1
                if not row:
                    continue
                if header is None:
                    header = _header(place, row)
                    continue
                if len(row) != len(header):
                    raise InvalidInput(
                        f"{place}: got {len(row)} fields, expected {len(header)}{'' if columns else ' as in the header'}. "
                        "Text with commas or line ends goes in double quotes."
                    )
                number += 1
                yield Record(dict(zip(header, row, strict=True)), place, number)
    except OSError as error:
        raise unreadable(path, error) from error


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{path}, line {number}: got bytes that are not UTF-8 text, expected comma-separated values in UTF-8."
            ) from None


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        line = getattr(reader, "line_num", "?")
        raise InvalidInput(f"{path}, line {line}: got a broken row ({error}), expected comma-separated values.") from None


def _header(place: str, row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"{place}: got the column {twice[0]!r} twice, expected columns of different names.")
    return names

"""Questions to be answered, whose answers nobody may know: a line each, or records of a data set's file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gnothi.datasets.packed import bare_name, opened
from gnothi.datasets.records import unreadable
from gnothi.datasets.registry import load
from gnothi.datasets.tables import PARQUET, TABLES
from gnothi.errors import InvalidInput
from gnothi.types import Question

_RECORDS = (b"{", b"[")


def load_unanswered(source: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a file: as ``load``, but that records may lack answers; or, of a file that is none of
    records, one a line that is not blank, whose id is the line's number. Raises as ``load``."""
    path = Path(source)
    if format is not None or bare_name(path).endswith((*TABLES, PARQUET)) or not path.is_file() or _holds_records(path):
        return load(source, format, limit, answered=False)
    found = list(islice(_lines(path), limit))
    if not found:
        raise InvalidInput(f"{path} holds no questions; expected at least one, a line each.")
    return found


def _holds_records(path: Path) -> bool:
    try:
        with opened(path) as file:
            first = next((bare for line in file if (bare := line.removeprefix(b"\xef\xbb\xbf").strip())), b"")
    except OSError as error:
        raise unreadable(path, error) from error
    return first.startswith(_RECORDS)


def _lines(path: Path) -> Iterator[Question]:
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InvalidInput(f"{path}, line {number}: got bytes that are not UTF-8 text, expected a question.") from error
            if text:
                yield Question(str(number), text)

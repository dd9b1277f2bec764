"""A table of scores and outcomes, as CSV, TSV or Parquet: a row for each question, how good the answer was without and with
retrieval (``never`` and ``always``, from 0 for wrong to 1 for right), and a column for each signal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.baselines import require_two
from gnothi.calibration.replay import Floats, Replay, Scores
from gnothi.datasets.records import Record, bare_name
from gnothi.datasets.tables import TABLES, read_table
from gnothi.errors import InvalidInput, MissingDependency, UnknownName, shown
from gnothi.filtering.traits import QUESTION, Texts

NEVER, ALWAYS = "never", "always"
PARQUET = ".parquet"
IDENTITIES = ("id", "question_id", "", "Unnamed: 0", "__index_level_0__")
"""Columns of numbers that are no signal: ids, and the index that pandas writes."""
_TRUTH = {"true": 1.0, "false": 0.0}
_NOTHING = ("", "null", "none", "nan", "na")
RECORDED = "as recorded"


def is_table(path: Path) -> bool:
    return bare_name(path).endswith((*TABLES, PARQUET))


def columns_of(path: Path) -> tuple[str, ...]:
    """Of its first row; empty where it has none. Raises InvalidInput, MissingDependency."""
    first = next(_records(path), None)
    return () if first is None else tuple(first.data)


def read_scored(path: Path, never: str = NEVER, always: str = ALWAYS, surer: Sequence[str] = ()) -> Replay:
    """Every other column of numbers is a signal, higher where the model is less sure, unless ``surer`` names it; an empty cell
    was not measured. Columns of texts, and ids, are no signals; ``question``, and the answers in ``never_answer`` and
    ``always_answer`` (after the names of the ends), are what a gate can be learnt from too.

    Raises InvalidInput naming file and line, UnknownName, InvalidSetting where both ends are the same, MissingDependency."""
    require_two(never, always)
    records = list(_records(path))
    if not records:
        raise InvalidInput(f"{path}: got no rows, expected scores and outcomes, a row for each question.")
    names = list(records[0].data)
    for end in (never, always):
        if end not in names:
            raise UnknownName(f"column of {path} (name yours with <--never> and <--always>)", end, names)
    quality = {end: _outcomes(records, end) for end in (never, always)}
    signals = {
        name: values
        for name in names
        if name not in (never, always, *IDENTITIES) and (values := _scores(records, name)) is not None
    }
    for name in surer:
        if name not in signals:
            raise UnknownName(f"column of numbers of {path}", name, signals)
    wrong, known = quality[never] < 1, np.ones(len(records), dtype=bool)
    replayed = []
    for name, values in signals.items():
        sign = -1 if name in surer else 1
        replayed.append(Scores(name, np.where(np.isfinite(values), sign * values, np.inf), wrong, known, never, sign))
    dataset = Path(bare_name(path)).stem
    held = (QUESTION, f"{never}_answer", f"{always}_answer")
    texts = tuple(Texts(*(_text(record.data.get(name)) for name in held)) for record in records)
    return Replay(str(path), dataset, RECORDED, (never, always), quality[never], quality[always], tuple(replayed), texts=texts)


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def _records(path: Path) -> Iterator[Record]:
    if not bare_name(path).endswith(PARQUET):
        yield from read_table(path)
        return
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependency("pyarrow", "parquet", f"reading {path}") from error
    try:
        number = 0
        for batch in pq.ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield Record(row, f"{path}, row {number}", number)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read: {error!s:.200}. Expected a Parquet file.") from None


def _outcomes(records: Sequence[Record], name: str) -> Floats:
    outcomes = []
    for record in records:
        cell = record.data.get(name)
        value = _TRUTH.get(str(cell).strip().lower(), _number(cell))
        if value is None or not 0 <= value <= 1:
            raise record.invalid(f"{name} = {shown(cell)}", "how good the answer was, from 0 for wrong to 1 for right")
        outcomes.append(value)
    return np.array(outcomes, dtype=np.float64)


def _scores(records: Sequence[Record], name: str) -> Floats | None:
    """None for a column that is no signal, whose first cell that is not empty holds no number."""
    values: list[float] = []
    any_number = False
    for record in records:
        cell = record.data.get(name)
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in _NOTHING):
            values.append(np.inf)
            continue
        number = _number(cell)
        if number is None and not any_number:
            return None
        if number is None:
            raise record.invalid(f"{name} = {shown(cell)}", "a number, as in the rows before, or an empty cell")
        any_number = True
        values.append(number)
    return np.array(values, dtype=np.float64) if any_number else None


def _number(cell: Any) -> float | None:
    """None for what is no number."""
    if isinstance(cell, bool) or not (isinstance(cell, str | int | float | Decimal)):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None

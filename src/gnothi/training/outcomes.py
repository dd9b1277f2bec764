"""What can be learnt from a run of ``gnothi eval`` over training questions: which methods answered what rightly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row
from gnothi.session.data import refuse_test_run

METRIC = "em"


def rows_of(run: Path, methods: Sequence[str]) -> list[Row]:
    """The rows of a run. Raises InvalidInput where it holds no answers of one of the methods, or none of them all to the same
    question, InvalidSetting where its questions are the laboratory's for testing."""
    refuse_test_run(run)
    rows = read_rows(run)
    asked = [{row.question_id for row in rows if row.method == method} for method in methods]
    if not set.intersection(*asked):
        found = ", ".join(sorted({row.method for row in rows})) or "none"
        wanted = ", ".join(methods)
        raise InvalidInput(
            f"{run}: got answers by {found}, expected {wanted} over the same questions. Make a run with "
            f"`gnothi eval TRAINING-QUESTIONS --method {','.join(methods)} --out {run}`."
        )
    return rows


def rights(rows: Sequence[Row]) -> dict[tuple[str, str], bool]:
    """By method and question, whether the answer was right."""
    return {row.key: row.metrics[METRIC] == 1 for row in rows if METRIC in row.metrics}

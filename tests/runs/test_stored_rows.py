"""Rows read back from a file: what was written comes back, and whatever else stands there is refused with its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.report.document import document
from gnothi.report.sections import Section
from gnothi.report.spreadsheet import write_tables
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, jsonable
from gnothi.runs.stored_rows import finite, from_dict
from tests.messages import refused
from tests.report.rows import row

GAUGE = {"score": 1.5, "model_calls": 1, "prompt_tokens": 9, "generated_tokens": 280}


def stored(found: Row) -> dict[str, Any]:
    """As a file has it."""
    return dict(json.loads(json.dumps(jsonable(found.as_dict()))))


def test_what_was_written_comes_back() -> None:
    for found in (row("seakr", 1, uncertainty=0.7), row("cot", 2, failed=True), row("panel", 3, signals={"gram": GAUGE})):
        assert from_dict(stored(found) | {"of_a_later_version": [1]}, "here") == found


def changed(path: str, value: Any) -> dict[str, Any]:
    data: Any = stored(row("seakr", 1, uncertainty=0.7, signals={"gram": GAUGE}))
    inner: Any = data
    *way, last = path.split("/")
    for key in way:
        inner = inner[int(key)] if key.isdigit() else inner[key]
    if value is KeyError:
        del inner[last]
    else:
        inner[last] = value
    return dict(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("decisions/0/score", float("nan")),
        ("decisions/0/score", "-3"),
        ("decisions/0/threshold", float("inf")),
        ("decisions/0/kind", KeyError),
        ("signals/gram/score", float("nan")),
        pytest.param("signals/gram/score", 10**400, id="401 digits"),
        ("signals/gram", 3),
        ("uncertainty", "high"),
        ("metrics/em", KeyError),
        ("metrics/em", None),
        ("metrics/em", True),
        ("cost/seconds", KeyError),
        ("gold", ["a", 1]),
        ("error", "broken"),
        ("question_id", 7),
        ("method", KeyError),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, path: str, value: Any) -> None:
    good = json.dumps(stored(row("cot", 1)))
    (tmp_path / "rows.jsonl").write_text(f"{good}\n{json.dumps(changed(path, value))}\n", encoding="utf-8")
    with refused(InvalidInput):
        read_rows(tmp_path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["score", "kind", "em", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PATHS = [
    *Row.__slots__,
    *(f"metrics/{name}" for name in ("em", "f1", "accuracy")),
    *(f"cost/{name}" for name in ("retrievals", "model_calls", "prompt_tokens", "seconds", "cached_calls")),
    *(f"decisions/0/{name}" for name in ("kind", "signal", "score", "threshold", "verdict", "subject")),
    *("signals/gram", *(f"signals/gram/{name}" for name in GAUGE)),
]
CROWD = [found for number in range(4) for found in (row("cot", number, number % 2 > 0), row("rag", number, retrieved=True))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.sampled_from(PATHS), ANYTHING)
@example("signals/gram/score", -(2**63) - 1)
def test_a_row_is_refused_or_can_be_reported(tmp_path: Path, path: str, value: Any) -> None:
    data = changed(path, copy.deepcopy(value))
    try:
        found = from_dict(data, "FILE, line 3")
    except InvalidInput:
        return
    section = Section("lab", (tmp_path,), ({},), (*CROWD, found), {}, 9)
    write_tables([document(section)], [section], tmp_path / "csv")


def test_numbers_that_can_be_computed_with() -> None:
    assert all(map(finite, (0, -1.5, 10**300)))
    assert not any(map(finite, (True, None, "1", float("nan"), float("-inf"), 10**400)))

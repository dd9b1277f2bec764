"""What many questions would take: means times questions, ends that hold them, hours by the pace of the run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.report.costs import Prices
from gnothi.report.forecast import SPREAD, caveats, forecast
from gnothi.runs.folder import Pace
from gnothi.runs.rows import Row
from tests.messages import refused

TIMED = [Pace(30.0, 3, 300, 1), Pace(70.0, 7, 700, 1)]


def _row(read: float, written: float, method: str = "rag", number: int = 0, cached: int = 0) -> Row:
    cost = {"retrievals": 1, "model_calls": 2, "prompt_tokens": read, "generated_tokens": written, "cached_calls": cached}
    return Row(method, f"q{number}", "Who?", "Ada", cost=cost)


def test_sums_are_means_times_questions() -> None:
    (found,) = forecast([_row(80, 10), _row(100, 10, number=1)], TIMED, 1_000_000, 4, Prices(1.0, 2.0, hour=3.0))
    assert (found.seen, found.calls.value, found.searches.value) == (2, 2e6, 1e6)
    assert (found.read.value, found.written.value) == (90e6, 10e6)
    assert found.hours is not None
    assert found.money is not None
    assert found.hours.value == pytest.approx(1e6 * 100 * (100 / 1000) / 3600 / 4)  # ten tokens a second
    assert found.money.value == pytest.approx(90 + 20 + 3 * 4 * found.hours.value)
    assert found.hours.between is not None
    assert found.hours.between.low == pytest.approx(1e6 * 90 * 0.1 / 3600 / 4 * (1 - SPREAD))


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 500)), min_size=1, max_size=5), st.integers(1, 10**9))
def test_ends_hold_the_value(costs: list[tuple[int, int]], questions: int) -> None:
    rows = [_row(read, written, number=number) for number, (read, written) in enumerate(costs)]
    (found,) = forecast(rows, TIMED, questions, 2, Prices(hour=1.0))
    for one in (found.calls, found.searches, found.read, found.written, found.hours, found.money):
        assert one is not None
        assert (one.between is None) == (len(costs) == 1)
        if one.between is None:
            continue
        assert one.between.low <= one.value * (1 + 1e-9)
        assert one.value <= one.between.high * (1 + 1e-9)


def test_without_a_pace_there_are_no_hours_and_no_money_by_the_hour() -> None:
    (found,) = forecast([_row(80, 10)], [], 10, prices=Prices(hour=3.0))
    assert (found.hours, found.money) == (None, None)
    (found,) = forecast([_row(80, 10)], [], 10, prices=Prices(prompt=3.0))
    assert found.money is not None
    assert found.money.value == pytest.approx(10 * 80 * 3 / 1e6)


def test_a_run_without_answers_is_refused() -> None:
    with refused(InvalidInput):
        forecast([Row("rag", "q", "Who?", error={"type": "X", "message": "y"})], TIMED, 10)


def test_doubts_are_told() -> None:
    assert "not timed" in caveats([_row(1, 1)], [])[0]
    two = [_row(1, 1), _row(1, 1, number=1)]
    assert caveats(two, TIMED) == []
    assert "one question" in caveats(two[:1], TIMED)[0]
    assert "rarely full" in caveats(two, [Pace(1.0, 10, 10, 256)])[0]
    assert "side by side" in caveats([*two, _row(1, 1, "cot"), _row(1, 1, "cot", 1)], TIMED)[0]
    assert "cache" in caveats([_row(1, 1, cached=1), _row(1, 1, cached=1, number=1)], TIMED)[0]

"""Risk-coverage numbers against all orders of ties, against closed forms, and by hand."""

from __future__ import annotations

from itertools import accumulate, permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.report.selective import Accepted, selective
from gnothi.stats.auroc import aurc, aurc_interval
from tests.report.rows import row

ANSWERS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=5)


@given(ANSWERS)
@settings(max_examples=60, deadline=None)
def test_aurc_is_the_mean_over_all_orders_of_ties(answers: list[tuple[int, bool]]) -> None:
    """The definition: accept one answer after the other, the most certain first, equal ones in any order."""
    total = 0.0
    for order in permutations(answers):
        ranked = sorted(order, key=lambda answer: answer[0])
        wrong = accumulate(wrong for _, wrong in ranked)
        total += sum(errors / count for count, errors in enumerate(wrong, 1)) / len(ranked)
    found = aurc([uncertainty for uncertainty, _ in answers], [wrong for _, wrong in answers])
    assert found == pytest.approx(total / factorial(len(answers)))


def test_aurc_by_hand() -> None:
    assert aurc([], []) is None
    assert aurc([1, 2], [False, True]) == pytest.approx((0 + 0.5) / 2)
    assert aurc([2, 1], [False, True]) == pytest.approx((1 + 0.5) / 2)
    assert aurc([1, 1, 1], [True, False, False]) == pytest.approx(1 / 3)


@given(ANSWERS)
@settings(deadline=None)
def test_no_uncertainty_beats_one_that_knows_the_errors(answers: list[tuple[int, bool]]) -> None:
    wrong = [one for _, one in answers]
    best, own = aurc(wrong, wrong), aurc([uncertainty for uncertainty, _ in answers], wrong)
    assert best is not None
    assert own is not None
    assert best <= own + 1e-12


def test_the_interval_holds_the_estimate_and_narrows() -> None:
    random = np.random.default_rng(1)
    widths = []
    for n in (40, 400):
        wrong = random.random(n) < 0.4
        uncertainty = random.normal(size=n) + wrong
        estimate, interval = aurc(uncertainty, wrong), aurc_interval(uncertainty, wrong, resamples=300)
        assert estimate is not None
        assert interval is not None
        assert interval.low < estimate < interval.high
        widths.append(interval.high - interval.low)
    assert widths[1] < widths[0] / 2
    assert aurc_interval([1.0], [True]) is None


def test_a_method_by_hand() -> None:
    rows = [row("m", number, right=number < 2, uncertainty=float(number)) for number in range(4)]
    found = selective("m", [*rows, row("m", 9, failed=True)])
    assert found is not None
    assert (found.n, found.risk, found.auroc) == (4, 0.5, 1.0)
    assert found.aurc == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert found.aurc == found.best_aurc
    assert [(at.wanted, at.risk) for at in found.at] == [(0.25, 0), (0.5, 0), (0.75, 1 / 3), (0.9, 1 / 3)]
    assert [point.uncertainty for point in found.curve] == [0, 1, 2, 3]


def test_equally_certain_answers_have_no_small_share() -> None:
    found = selective("m", [row("m", number, right=number > 0, uncertainty=1.0) for number in range(4)])
    assert found is not None
    assert [at.coverage for at in found.at] == [None] * 4
    assert found.curve == (Accepted(1.0, 0.25, 1.0),)
    assert selective("m", [row("m", 1), row("m", 2)]) is None

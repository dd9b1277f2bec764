"""The calibration error in closed form, and how often its interval holds the true one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.stats.arrays import Floats
from gnothi.stats.reliability import drift, ece, ece_interval, reliability
from tests.messages import refused


def test_ece_in_closed_form() -> None:
    assert ece([], []) is None
    assert ece([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0]) == 0
    assert ece([1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1]) == 1
    assert ece([0.95, 0.95, 0.25, 0.25], [1, 0, 0, 0]) == pytest.approx(0.5 * 0.45 + 0.5 * 0.25)
    assert [bin.n for bin in reliability([0.0, 0.05, 0.99, 1.0], [0, 0, 1, 1])] == [2, 2]
    with refused(ValueError):
        ece([1.2], [1])
    with refused(ValueError):
        ece([0.2], [1, 0])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50), st.integers(1, 20))
def test_bins_hold_everything_once(items: list[tuple[float, bool]], bins: int) -> None:
    found = reliability([p for p, _ in items], [y for _, y in items], bins)
    assert sum(bin.n for bin in found) == len(items)
    assert sum(bin.n * bin.predicted for bin in found) == pytest.approx(sum(p for p, _ in items))
    assert sum(bin.n * bin.observed for bin in found) == pytest.approx(sum(y for _, y in items))


Curve = Callable[[Floats], tuple[Floats, Floats]]
CURVES: dict[str, tuple[float, Curve]] = {  # the true error, and what is predicted and true for a uniform number
    "perfect": (0.0, lambda u: (u, u)),
    "perfect and mostly sure": (0.0, lambda u: (u**3, u**3)),
    "one value, nearly right": (0.02, lambda u: (np.full(len(u), 0.4), np.full(len(u), 0.42))),
    "shifted": (0.1, lambda u: (u * 0.8, u * 0.8 + 0.1)),
    "overconfident": (0.1, lambda u: (u, 0.5 + 0.6 * (u - 0.5))),
    "wrong in one bin": (0.035, lambda u: (u, np.where(u > 0.9, 0.6, u))),
}


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("curve", CURVES)
def test_the_interval_of_the_calibration_error_covers_the_true_one(curve: str, n: int) -> None:
    true, shape = CURVES[curve]
    random, held = np.random.default_rng(1), 0
    for _ in range(100):
        predicted, chance = shape(random.random(n))
        interval = ece_interval(predicted, random.random(n) < chance, resamples=150)
        assert interval is not None
        held += interval.low <= true + 1e-3 and true <= interval.high
    assert held >= 83  # below which, with a coverage of .90, one of a hundred such samples falls


def test_the_interval_of_the_calibration_error_narrows_and_excludes_zero_where_it_can() -> None:
    random = np.random.default_rng(0)
    found = []
    for n in (100, 1000, 10_000):
        predicted = random.random(n) * 0.8
        found.append(ece_interval(predicted, random.random(n) < predicted + 0.1))
    few, more, many = (interval for interval in found if interval is not None)
    assert few.high - few.low > more.high - more.low > many.high - many.low
    assert many.low > 0.08
    assert many.high < 0.12
    surely = ece_interval([0.9] * 50, [0] * 50)
    assert surely is not None
    assert surely.low > 0.7
    assert ece_interval([0.5], [1]) is None
    one = ece_interval([0.5, 0.5], [1, 0])
    assert one is not None
    assert one.low == 0 < one.high


SAMPLE = st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=40)


def test_the_largest_gap_between_two_samples() -> None:
    """By hand: below 3 lie all of the first sample and half of the second."""
    assert drift([1, 2, 2.5, 2.9], [2, 2.5, 4, 5]).distance == 0.5


def test_as_scipy_has_it() -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(size=300), random.normal(0.1, size=200)
    found, expected = drift(one, other), stats.ks_2samp(one, other)
    assert found.distance == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, rel=0.1)


def test_one_distribution_rarely_alarms_and_another_one_does() -> None:
    random = np.random.default_rng(0)
    same = [drift(random.normal(size=300), random.normal(size=200)).p for _ in range(300)]
    assert 0 <= np.mean(np.array(same) < 0.05) < 0.09
    assert drift(random.normal(size=300), random.normal(0.5, size=200)).p < 0.001


@given(SAMPLE, SAMPLE)
def test_any_two_samples_compare(one: list[float], other: list[float]) -> None:
    found = drift(one, other)
    assert 0 <= found.distance <= 1
    assert 0 <= found.p <= 1
    assert drift(other, one).distance == pytest.approx(found.distance)
    assert drift(one, one).distance == 0


def test_what_lies_beyond_all_counts() -> None:
    infinity = float("inf")
    assert drift([1, 2, infinity, infinity], [1, 2, 3, 3]).distance == 0.5


@pytest.mark.parametrize("wrong", [[], [float("nan")], [[1.0]]])
def test_no_sample(wrong: list[float]) -> None:
    with refused(ValueError):
        drift(wrong, [1.0])

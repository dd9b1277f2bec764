from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.stats.drift import drift

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
    with pytest.raises(ValueError, match="two columns of numbers"):
        drift(wrong, [1.0])

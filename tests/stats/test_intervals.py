"""Intervals against scipy, closed forms and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gnothi.stats.intervals import mean_interval, wilson_interval


def test_mean_interval_is_scipys() -> None:
    values = np.random.default_rng(1).beta(0.4, 0.6, 300)
    ours = mean_interval(values, resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2))
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=2e-3)


def test_mean_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered = 0
    for repetition in range(400):
        interval = mean_interval(random.random(100) < 0.3, resamples=400, seed=repetition)
        assert interval is not None
        covered += interval.low <= 0.3 <= interval.high
    assert 0.90 <= covered / 400 <= 0.98


def test_mean_interval_without_spread() -> None:
    assert mean_interval([]) is None
    assert mean_interval([1.0]) is None
    assert mean_interval([0.5, 0.5]) == (0.5, 0.5)
    assert mean_interval([1.0] * 20) == wilson_interval(20, 20)
    low, high = mean_interval([0.0] * 20) or (9, 9)
    assert low == pytest.approx(0, abs=1e-12)
    assert 0.1 < high < 0.2
    assert [mean_interval([value] * 20, share=False) for value in (0.0, 0.5, 1.0)] == [None] * 3


def test_mean_interval_in_chunks_is_the_same_kind_of_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(50)
    whole = mean_interval(values)
    monkeypatch.setattr("gnothi.stats.intervals._BATCH", 64)
    assert mean_interval(values) == pytest.approx(whole, abs=0.03)


def test_huge_values_have_an_interval() -> None:
    low, high = mean_interval([1e300, 2.0, 3.0, 1e307]) or (9, 9)
    assert 2.0 <= low < high <= 1e307

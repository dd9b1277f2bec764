"""Means, and how sure a mean or a share is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import Floats, mid_ranks

CONFIDENCE = 0.95
RESAMPLES = 2_000
_BATCH = 1 << 22  # numbers of resamples held at once


class Interval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


def mean(values: Iterable[float]) -> float | None:
    """None where there is nothing to average."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


def mean_interval(
    values: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0, share: bool = True
) -> Interval | None:
    """Percentile bootstrap interval of the mean (Efron & Tibshirani 1993, chapter 13). None for fewer than two values.

    Where all values are equal the bootstrap says nothing: for all zeros or all ones the Wilson interval of a share is given.
    What is no ``share`` (a cost, a difference) may lie outside [0, 1]: None where all values are equal.
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < 2:
        return None
    if np.ptp(sample) <= 1e-12:  # means of several folds differ in their last bits
        if not share:
            return None
        value = round(float(sample[0]), 12)
        whole = value in (0.0, 1.0)
        return wilson_interval(round(value * len(sample)), len(sample), confidence) if whole else Interval(value, value)
    return bootstrap((sample,), np.mean, confidence, resamples, seed)


def bootstrap(
    data: tuple[Floats, ...],
    statistic: Callable[..., Any],
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of a statistic of ``data``: arrays of one length (2 at least), drawn from together.

    A ``statistic`` that takes ``axis`` is computed of many samples at once."""
    from scipy import stats  # a second to import: only where numbers are asked for

    with np.errstate(over="ignore", invalid="ignore"):  # of its standard error, which nobody asked for
        interval = stats.bootstrap(
            data,
            statistic,
            n_resamples=resamples,
            batch=max(1, _BATCH // len(data[0])),
            paired=len(data) > 1,
            confidence_level=confidence,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


def percentiles(values: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """The interval that holds this share of ``values``, with as much of the rest on either side."""
    low, high = np.quantile(np.asarray(values, dtype=np.float64), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def wilson_interval(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a share (Wilson 1927); never empty, never outside [0, 1]."""
    from scipy import stats

    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Interval(float(interval.low), float(interval.high))


def spearman(columns: ArrayLike) -> list[list[float | None]]:
    """Rank correlations between ``columns``, shape (k, n): k rows of k numbers. Infinite values rank highest; None beside a
    column that is the same everywhere."""
    ranks = np.array([mid_ranks(column) for column in np.asarray(columns, dtype=np.float64)])
    if not ranks.size:
        return []
    ranks -= ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = (ranks @ ranks.T) / np.outer(length, length)
    return [[float(value) if np.isfinite(value) else None for value in row] for row in correlations]

"""What a gate between never and always retrieving comes to at every threshold, and which threshold pays best.

Pure functions of arrays with one entry per question: ``scores`` (higher: less certain; infinite: could not be measured, always
retrieved for), and ``never`` and ``always``, the quality of the two answers in [0, 1]. A question retrieves where its score is
above the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import Floats, Mask, columns
from gnothi.stats.intervals import CONFIDENCE, RESAMPLES, Interval, mean_interval, percentiles

FOLDS = 5
REPEATS = 10


class Point(NamedTuple):
    """A threshold, the share of questions above it, and the mean quality there."""

    threshold: float
    retrieval_rate: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """Every gate that a signal allows: arrays of shape (m,), ``thresholds`` rising from -infinity (retrieves for all)."""

    thresholds: Floats
    retrieval_rate: Floats
    accuracy: Floats

    def points(self) -> list[Point]:
        columns = (self.thresholds.tolist(), self.retrieval_rate.tolist(), self.accuracy.tolist())
        return [Point(*row) for row in zip(*columns, strict=True)]

    def best(self, price: float = 0.0) -> Point:
        """Where accuracy - price x retrieval rate is highest; of equally good ones, the one that retrieves least."""
        utility = self.accuracy - price * self.retrieval_rate
        index = int(np.flatnonzero(utility >= utility.max() - 1e-12)[-1])
        return self.points()[index]


def frontier(scores: ArrayLike, never: ArrayLike, always: ArrayLike) -> Frontier:
    """All thresholds that tell the questions apart differently: -infinity, the middles between neighbouring scores, the highest
    finite score. Raises ValueError for arrays of different shapes, without questions, or scores that are not a number."""
    x, without, with_ = _checked(scores, never, always)
    order = np.argsort(x, kind="stable")
    x, without, with_ = x[order], without[order], with_[order]
    cuts = between(x)
    trusted = np.searchsorted(x, cuts, side="right")
    gained = np.concatenate([[0.0], np.cumsum(without)]) + with_.sum() - np.concatenate([[0.0], np.cumsum(with_)])
    return Frontier(cuts, 1 - trusted / len(x), gained[trusted] / len(x))


def between(scores: Floats) -> Floats:
    """-infinity, the middles between neighbouring distinct finite scores, the highest of them."""
    distinct = np.unique(scores[np.isfinite(scores)])
    low, high = distinct[:-1], distinct[1:]
    middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)  # neighbouring floats have nothing between them
    return np.concatenate([[-np.inf], middle, distinct[-1:]])


def at(threshold: float, scores: ArrayLike, never: ArrayLike, always: ArrayLike) -> tuple[Mask, Floats]:
    """(retrieved, quality) per question under one threshold."""
    x, without, with_ = _checked(scores, never, always)
    retrieved = ~(x <= threshold)
    return retrieved, np.where(retrieved, with_, without)


def oracle(never: ArrayLike, always: ArrayLike) -> Floats:
    """The better of the two for each question. What no gate reaches: it also picks the winner where only luck decided."""
    return np.maximum(np.asarray(never, dtype=np.float64), np.asarray(always, dtype=np.float64))


# --- chosen on some questions, judged on others ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Validated:
    """Quality and retrieval of each question under thresholds chosen on other questions; means over the repeats, shape (n,)."""

    quality: Floats
    retrieved: Floats

    @property
    def interval(self) -> Interval | None:
        return mean_interval(self.quality)


def crossvalidate(scores: ArrayLike, never: ArrayLike, always: ArrayLike, price: float = 0.0) -> Validated:
    """Choose the threshold on all of FOLDS folds but one and apply it to that one; again for other partitions, REPEATS times.

    The labels of a question never have a part in the threshold that it is judged under. Raises ValueError for fewer questions
    than folds.
    """
    x, without, with_ = (np.asarray(values, dtype=np.float64) for values in (scores, never, always))
    n = len(without)
    if n < FOLDS:
        raise ValueError(f"got {n} questions, expected at least one for each of {FOLDS} folds")
    random = np.random.default_rng(0)
    quality, retrieved = np.zeros(n), np.zeros(n)
    for _ in range(REPEATS):
        fold = random.permutation(n) % FOLDS
        for held_out in range(FOLDS):
            test = fold == held_out
            threshold = frontier(x[~test], without[~test], with_[~test]).best(price).threshold
            searched, reached = at(threshold, x[test], without[test], with_[test])
            quality[test] += reached / REPEATS
            retrieved[test] += searched / REPEATS
    return Validated(quality, retrieved)


class GapClosed(NamedTuple):
    """The share of the way from the better of never and always to the oracle; negative where a gate is worse than that."""

    share: float | None
    interval: Interval | None


def gap_closed(quality: ArrayLike, never: ArrayLike, always: ArrayLike, confidence: float = CONFIDENCE) -> GapClosed:
    """With a percentile bootstrap interval over questions; in each resample the better of never and always is found anew.

    None where the oracle is no better than the better of the two."""
    columns = np.stack([np.asarray(quality, float), np.asarray(never, float), np.asarray(always, float), oracle(never, always)])
    share = float(_share(columns.mean(axis=1)))
    if not np.isfinite(share):
        return GapClosed(None, None)
    n = columns.shape[1]
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # (resamples, n)
    resampled = _share(columns @ counts.T / n)
    return GapClosed(share, percentiles(resampled[np.isfinite(resampled)], confidence))


def _share(means: Floats) -> Floats:
    """``means``: gate, never, always, oracle along the first axis."""
    better = np.maximum(means[1], means[2])
    room = means[3] - better
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(room > 1e-12, (means[0] - better) / room, np.nan)


def _checked(*values: ArrayLike) -> Sequence[Floats]:
    arrays = columns(*values, least=1)
    if any(np.isnan(array).any() for array in arrays):
        raise ValueError("got a value that is not a number")
    return arrays

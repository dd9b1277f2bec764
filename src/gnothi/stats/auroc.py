"""How well a score tells two classes apart: the area under the ROC curve, its interval, and whether two scores differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import Floats, Mask, mid_ranks, ranked
from gnothi.stats.intervals import CONFIDENCE, RESAMPLES, Interval, bootstrap, wilson_interval
from gnothi.stats.paired import PairedTest


def auroc(scores: ArrayLike, positive: ArrayLike) -> float | None:
    """Probability that a positive scores above a negative, ties counting half (Mann & Whitney 1947). None without both classes.

    Infinite scores are fine; NaN is a ValueError.
    """
    x, y = ranked(scores, positive)
    m, n = int(y.sum()), int((~y).sum())
    if not m or not n:
        return None
    ranks = mid_ranks(x)
    return float((ranks[y].sum() - m * (m + 1) / 2) / (m * n))


def auroc_within(scores: ArrayLike, positive: ArrayLike, groups: Sequence[str]) -> float | None:
    """As ``auroc``, of a positive and a negative of the same group alone: all such pairs count alike. What sets whole groups
    apart, and nothing inside them, has 0.5. None where no group holds both classes.
    """
    x, y = ranked(scores, positive)
    total, pairs = 0.0, 0
    names = np.asarray(groups, dtype=object)
    for name in set(groups):
        inside = names == name
        area = auroc(x[inside], y[inside])
        if area is not None:
            both = int(y[inside].sum()) * int((~y[inside]).sum())
            total, pairs = total + area * both, pairs + both
    return total / pairs if pairs else None


def auroc_interval(scores: ArrayLike, positive: ArrayLike, confidence: float = CONFIDENCE) -> Interval | None:
    """DeLong's interval (DeLong et al. 1988, by mid-ranks: Sun & Xu 2014) on the logit scale, so that it stays in [0, 1].

    Perfect separation has no estimated variance: then Wilson's interval for the smaller class is given, which is wide enough.
    None without two of each class.
    """
    x, y = ranked(scores, positive)
    above, below = x[y], x[~y]
    m, n = len(above), len(below)
    area = auroc(x, y)
    if area is None or min(m, n) < 2:
        return None
    placements_above, placements_below = _placements(x, y)
    variance = placements_above.var(ddof=1) / m + placements_below.var(ddof=1) / n
    if area in (0.0, 1.0) or variance == 0:
        return wilson_interval(round(area * min(m, n)), min(m, n), confidence)
    from scipy import special

    half = special.ndtri((1 + confidence) / 2) * np.sqrt(variance) / (area * (1 - area))
    centre = np.log(area / (1 - area))
    low, high = 1 / (1 + np.exp(-(centre + np.array([-half, half]))))
    return Interval(float(low), float(high))


def auroc_difference(
    first: ArrayLike, second: ArrayLike, positive: ArrayLike, confidence: float = CONFIDENCE
) -> PairedTest | None:
    """Do two scores of the same examples differ in AUROC (first minus second)? DeLong's test and interval (DeLong et al. 1988).

    None without two of each class. Where the scores place all examples alike there is no variance: then p is 1."""
    (a, y), (b, _) = ranked(first, positive), ranked(second, positive)
    m, n = int(y.sum()), int((~y).sum())
    if min(m, n) < 2:
        return None
    above, below = (first - second for first, second in zip(_placements(a, y), _placements(b, y), strict=True))
    difference = float(above.mean())
    deviation = float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    if deviation == 0:
        return PairedTest(len(y), difference, None, 1.0 if difference == 0 else 0.0, "DeLong test")
    from scipy import special

    half = float(special.ndtri((1 + confidence) / 2)) * deviation
    p = float(2 * special.ndtr(-abs(difference) / deviation))
    return PairedTest(len(y), difference, Interval(difference - half, difference + half), p, "DeLong test")


def _placements(x: Floats, y: Mask) -> tuple[Floats, Floats]:
    """Of each positive the share of negatives below it, of each negative the share of positives above it; ties count half."""
    above, below = x[y], x[~y]
    joint = mid_ranks(np.concatenate([above, below]))
    m, n = len(above), len(below)
    return (joint[:m] - mid_ranks(above)) / n, 1 - (joint[m:] - mid_ranks(below)) / m


# Answering only where certain: risk against coverage, and the area under that curve.


def risk_coverage(uncertainty: ArrayLike, wrong: ArrayLike) -> tuple[Floats, Floats]:
    """(coverage, risk): the share of wrong answers as ever more of the most certain ones are accepted (El-Yaniv & Wiener 2010).

    Both have one entry per distinct uncertainty: answers of equal uncertainty are accepted together.
    """
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    order = np.argsort(u, kind="stable")
    u, w = u[order], w[order]
    last_of_group = np.append(u[1:] != u[:-1], True) if len(u) else np.zeros(0, dtype=bool)
    accepted = np.arange(1, len(u) + 1)[last_of_group]
    return accepted / max(1, len(u)), np.cumsum(w)[last_of_group] / accepted


def aurc(uncertainty: ArrayLike, wrong: ArrayLike) -> float | None:
    """Area under the risk-coverage curve: the mean risk over accepting the most certain answer, the two most certain ... all
    (Geifman & El-Yaniv 2017). Answers of equal uncertainty count as ordered by chance. Lower is better; None for no answers.
    """
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if not len(u):
        return None
    order = np.argsort(u, kind="stable")
    u, errors = u[order], np.concatenate([[0.0], np.cumsum(w[order])])
    ends = np.append(np.flatnonzero(u[1:] != u[:-1]) + 1, len(u))
    accepted = np.arange(1, len(u) + 1)
    expected = np.interp(accepted, np.concatenate([[0], ends]), errors[np.concatenate([[0], ends])])
    return float((expected / accepted).mean())


def aurc_interval(
    uncertainty: ArrayLike, wrong: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval | None:
    """Percentile bootstrap interval over answers. None for fewer than two."""
    u, w = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    # Not by way of ``axis``: groups of equal uncertainty differ from sample to sample.
    return bootstrap((u, w), lambda one, other: aurc(one, other), confidence, resamples) if len(u) > 1 else None

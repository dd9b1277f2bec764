"""Answering only where certain: risk against coverage, and the area under that curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import Floats
from gnothi.stats.intervals import CONFIDENCE, RESAMPLES, Interval, bootstrap


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

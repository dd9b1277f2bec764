"""Answering only where sure: how many of the answers given would be wrong, were the least certain ones held back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gnothi.runs.rows import Row
from gnothi.stats.auroc import aurc, aurc_interval, auroc, auroc_interval, risk_coverage
from gnothi.stats.intervals import Interval

COVERAGES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class Covered:
    """The risk of the largest share of answers, up to a ``wanted`` coverage, that a threshold can accept. A ``coverage`` of
    None: not even the most certain answers are so few, for they are equally certain."""

    wanted: float
    coverage: float | None
    risk: float | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A point of the curve: ``uncertainty`` is the highest accepted."""

    coverage: float
    risk: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Selective:
    """By a method's own uncertainty of its answers.

    ``aurc`` is the area under the risk-coverage curve, ``best_aurc`` what an uncertainty that knows the errors would have.
    ``auroc``: do wrong answers have the higher uncertainty?"""

    method: str
    n: int
    metric: str
    risk: float
    aurc: float | None
    aurc_interval: Interval | None
    best_aurc: float | None
    auroc: float | None
    auroc_interval: Interval | None
    at: tuple[Covered, ...]
    curve: tuple[Accepted, ...]


def selective(method: str, rows: Sequence[Row]) -> Selective | None:
    """None where fewer than two answers have an uncertainty."""
    usable = [row for row in rows if row.uncertainty is not None and "em" in row.metrics]
    if len(usable) < 2:
        return None
    uncertainty = np.array([row.uncertainty for row in usable], dtype=np.float64)
    wrong = np.array([row.metrics["em"] < 1 for row in usable])
    coverage, risk = risk_coverage(uncertainty, wrong)
    points = zip(coverage.tolist(), risk.tolist(), np.unique(uncertainty).tolist(), strict=True)
    return Selective(
        method=method,
        n=len(usable),
        metric="em",
        risk=float(wrong.mean()),
        aurc=aurc(uncertainty, wrong),
        aurc_interval=aurc_interval(uncertainty, wrong),
        best_aurc=aurc(wrong, wrong),
        auroc=auroc(uncertainty, wrong),
        auroc_interval=auroc_interval(uncertainty, wrong),
        at=tuple(_at(limit, coverage.tolist(), risk.tolist()) for limit in COVERAGES),
        curve=tuple(Accepted(*point) for point in points),
    )


def _at(limit: float, coverage: Sequence[float], risk: Sequence[float]) -> Covered:
    within = [place for place, accepted in enumerate(coverage) if accepted <= limit or math.isclose(accepted, limit)]
    if not within:
        return Covered(limit, None, None)
    return Covered(limit, coverage[within[-1]], risk[within[-1]])

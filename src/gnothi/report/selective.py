"""Answering only where sure: how many of the answers given would be wrong, were the least certain ones held back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnothi.runs.rows import Row
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.selective import aurc, aurc_interval, risk_coverage

COVERAGES = (0.25, 0.5, 0.75, 0.9)


def selective(rows: Sequence[Row]) -> dict[str, Any] | None:
    """By the method's own uncertainty of its answers; None where fewer than two answers have one.

    ``aurc`` is the area under the risk-coverage curve, ``best_aurc`` what an uncertainty that knows the errors would have.
    ``auroc``: do wrong answers have the higher uncertainty? ``at``: the risk of the largest share of answers, up to a coverage,
    that a threshold can accept. ``curve``: coverage, risk, and the highest uncertainty accepted."""
    usable = [row for row in rows if row.uncertainty is not None and "em" in row.metrics]
    if len(usable) < 2:
        return None
    uncertainty = np.array([row.uncertainty for row in usable], dtype=np.float64)
    wrong = np.array([row.metrics["em"] < 1 for row in usable])
    coverage, risk = risk_coverage(uncertainty, wrong)
    return {
        "n": len(usable),
        "metric": "em",
        "risk": float(wrong.mean()),
        "aurc": aurc(uncertainty, wrong),
        "aurc_interval": aurc_interval(uncertainty, wrong),
        "best_aurc": aurc(wrong, wrong),
        "auroc": auroc(uncertainty, wrong),
        "auroc_interval": auroc_interval(uncertainty, wrong),
        "at": [_at(limit, coverage.tolist(), risk.tolist()) for limit in COVERAGES],
        "curve": [
            {"coverage": accepted, "risk": missed, "uncertainty": limit}
            for accepted, missed, limit in zip(coverage.tolist(), risk.tolist(), np.unique(uncertainty).tolist(), strict=True)
        ],
    }


def _at(limit: float, coverage: Sequence[float], risk: Sequence[float]) -> dict[str, float | None]:
    """A coverage of None: not even the most certain answers are so few, for they are equally certain."""
    within = [place for place, accepted in enumerate(coverage) if accepted <= limit or math.isclose(accepted, limit)]
    if not within:
        return {"wanted": limit, "coverage": None, "risk": None}
    return {"wanted": limit, "coverage": coverage[within[-1]], "risk": risk[within[-1]]}

"""Signals measured on the same answers: which tells the wrong ones best, at what price, and do they say the same?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnothi.calibration.ends import ByMethod, gauged
from gnothi.calibration.verdicts import gauged_scores
from gnothi.runs.rows import Row
from gnothi.signals import registry
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.correlation import spearman
from gnothi.stats.intervals import mean

PRICES = ("model_calls", "prompt_tokens", "generated_tokens")


def side_by_side(by_method: ByMethod) -> list[dict[str, Any]]:
    """For each method that measured signals beside its answers: of each signal AUROC with DeLong's interval (does it tell which
    of these answers are wrong, by exact match?), how often nothing could be measured, and what it takes beyond the answer, per
    question; rank correlations (Spearman) between the signals; names of signals that were left out, with what they need."""
    return [{"method": name, **_table(rows)} for name, rows in by_method.items() if gauged(rows)]


def _table(rows: Sequence[Row]) -> dict[str, Any]:
    wrong = {row.question_id: row.metrics["em"] < 1 for row in rows if row.metrics}
    scores = gauged_scores(rows)
    common = [question for question in wrong if all(question in found for found in scores.values())]
    values = np.array([[found[question] for question in common] for found in scores.values()])
    truth = [wrong[question] for question in common]
    return {
        "n": len(common),
        "wrong": sum(truth),
        "metric": "em",
        "signals": [_signal(name, column, truth, rows) for name, column in zip(scores, values, strict=True)],
        "correlations": {"of": list(scores), "spearman": spearman(values)},
        "left_out": {name: list(_needs(name)) for name in registry.names() if name not in scores},
    }


def _signal(name: str, scores: Any, wrong: Sequence[bool], rows: Sequence[Row]) -> dict[str, Any]:
    found = [row.signals[name] for row in rows if not row.failed and name in row.signals]
    return {
        "signal": name,
        "auroc": auroc(scores, wrong),
        "interval": auroc_interval(scores, wrong),
        "not_measured": sum(gauge["score"] is None for gauge in found),
        **{price: mean([gauge[price] for gauge in found]) for price in PRICES},
    }


def _needs(name: str) -> Sequence[str]:
    needs = registry.find(name).needs
    return [*(key for key in needs.__slots__ if getattr(needs, key)), *(["a probe"] if registry.reads_probe(name) else [])]

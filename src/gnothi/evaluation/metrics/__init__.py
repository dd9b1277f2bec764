"""Metrics of one answer against the gold answers, each in its own file; ``METRICS`` is what a row is scored with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gnothi.evaluation.metrics.accuracy import accuracy
from gnothi.evaluation.metrics.exact_match import exact_match
from gnothi.evaluation.metrics.f1 import f1
from gnothi.evaluation.metrics.normalise import normalise

Metric = Callable[[str, Sequence[str]], float]

METRICS: Mapping[str, Metric] = {"em": exact_match, "f1": f1, "accuracy": accuracy}
"""Name in rows and summaries -> function of (answer, gold answers) with a value in [0, 1]."""


def score(answer: str, golds: Sequence[str]) -> dict[str, float]:
    """Every metric of one answer; empty where there is no gold answer to hold it against."""
    return {name: metric(answer, golds) for name, metric in METRICS.items()} if golds else {}


__all__ = ["METRICS", "Metric", "accuracy", "exact_match", "f1", "normalise", "score"]

"""Metrics of one answer against the gold answers; ``METRICS`` is what a row is scored with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gnothi.metrics.accuracy import accuracy, contained, named_choice
from gnothi.metrics.forms import refuses
from gnothi.metrics.normalise import exact_match, f1, normalise

Metric = Callable[[str, Sequence[str]], float]

METRICS: Mapping[str, Metric] = {"em": exact_match, "f1": f1, "accuracy": accuracy}
"""Name in rows and summaries -> function of (answer, gold answers) with a value in [0, 1]."""


def score(answer: str, golds: Sequence[str], choices: Sequence[str] = (), answerable: bool = True) -> dict[str, float]:
    """Every metric of one answer; empty where there is no gold answer to hold it against.

    With ``choices``, accuracy asks which of them the answer names. Where a question cannot be answered, to abstain is right and
    everything else wrong, in every metric (as in SQuAD 2.0).
    """
    if not answerable:
        return dict.fromkeys(METRICS, float(refuses(answer)))
    scores = {name: metric(answer, golds) for name, metric in METRICS.items()} if golds else {}
    if golds and choices:
        scores["accuracy"] = max(scores["em"], exact_match(named_choice(answer, choices) or answer, golds))
    return scores


__all__ = ["METRICS", "Metric", "accuracy", "contained", "exact_match", "f1", "named_choice", "normalise", "refuses", "score"]

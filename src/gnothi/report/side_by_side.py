"""Signals measured on the same answers: which tells the wrong ones best, at what price, and do they say the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnothi.calibration.compare import Correlations
from gnothi.calibration.ends import ByMethod, gauged
from gnothi.calibration.verdicts import gauged_scores
from gnothi.runs.rows import Row
from gnothi.signals import registry
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.correlation import spearman
from gnothi.stats.intervals import Interval, mean


@dataclass(frozen=True, slots=True)
class Reading:
    """A signal: AUROC with DeLong's interval (does it tell which answers are wrong, by exact match?), how often nothing could
    be measured, and what it takes beyond the answer, per question."""

    signal: str
    auroc: float | None
    interval: Interval | None
    not_measured: int
    model_calls: float | None
    prompt_tokens: float | None
    generated_tokens: float | None


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The signals that a method measured beside its answers; those that were ``left_out``, with what they need."""

    method: str
    n: int
    wrong: int
    metric: str
    signals: tuple[Reading, ...]
    correlations: Correlations
    left_out: Mapping[str, Sequence[str]]


def side_by_side(by_method: ByMethod) -> list[SideBySide]:
    """Of each method that measured signals beside its answers."""
    return [_table(name, rows) for name, rows in by_method.items() if gauged(rows)]


def _table(name: str, rows: Sequence[Row]) -> SideBySide:
    wrong = {row.question_id: row.metrics["em"] < 1 for row in rows if row.metrics}
    scores = gauged_scores(rows)
    common = [question for question in wrong if all(question in found for found in scores.values())]
    values = np.array([[found[question] for question in common] for found in scores.values()])
    truth = [wrong[question] for question in common]
    return SideBySide(
        method=name,
        n=len(common),
        wrong=sum(truth),
        metric="em",
        signals=tuple(_reading(signal, column, truth, rows) for signal, column in zip(scores, values, strict=True)),
        correlations=Correlations(list(scores), spearman(values)),
        left_out={signal: _needs(signal) for signal in registry.names() if signal not in scores},
    )


def _reading(name: str, scores: Any, wrong: Sequence[bool], rows: Sequence[Row]) -> Reading:
    found = [row.signals[name] for row in rows if not row.failed and name in row.signals]
    prices = ("model_calls", "prompt_tokens", "generated_tokens")
    return Reading(
        name,
        auroc(scores, wrong),
        auroc_interval(scores, wrong),
        sum(gauge["score"] is None for gauge in found),
        *(mean([gauge[price] for gauge in found]) for price in prices),
    )


def _needs(name: str) -> Sequence[str]:
    needs = registry.find(name).needs
    return [*(key for key in needs.__slots__ if getattr(needs, key)), *(["a probe"] if registry.reads_probe(name) else [])]

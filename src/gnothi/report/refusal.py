"""Refusing what cannot be answered, and only that: for questions whose metadata tell whether they are answerable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.report.breakdown import abstained
from gnothi.runs.rows import Row
from gnothi.stats.intervals import Interval, mean, mean_interval


@dataclass(frozen=True, slots=True)
class Refusal:
    """``accuracy`` is that of the answerable questions, ``refused_answerable`` the share of them that was refused.

    ``precision``, ``recall`` and ``f1`` are those of refusing, unanswerable questions being the positive class: the measure of
    SelfAware (Yin et al. 2023), which finds refusals by sentence similarity where we look for words (``metrics.refusal``).
    """

    n: int
    answerable: int
    unanswerable: int
    accuracy: float | None
    accuracy_interval: Interval | None
    refused_answerable: float | None
    precision: float | None
    recall: float | None
    f1: float | None


def refusal(rows: Sequence[Row]) -> Refusal | None:
    """None for questions that do not tell."""
    told = [row for row in rows if not row.failed and isinstance(row.metadata.get("answerable"), bool)]
    if not told:
        return None
    answerable = [row for row in told if row.metadata["answerable"]]
    unanswerable = [row for row in told if not row.metadata["answerable"]]
    scores = [row.metrics["accuracy"] for row in answerable if "accuracy" in row.metrics]
    wrongly, rightly = (sum(map(abstained, group)) for group in (answerable, unanswerable))
    return Refusal(
        n=len(told),
        answerable=len(answerable),
        unanswerable=len(unanswerable),
        accuracy=mean(scores),
        accuracy_interval=mean_interval(scores),
        refused_answerable=mean(map(abstained, answerable)),
        precision=rightly / (rightly + wrongly) if rightly + wrongly else None,
        recall=rightly / len(unanswerable) if unanswerable else None,
        f1=2 * rightly / (wrongly + rightly + len(unanswerable)) if unanswerable else None,
    )

"""Answers that exact match cannot see: sentences, where a few words are expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.errors import InvalidInput
from gnothi.metrics.forms import sentence_like
from gnothi.runs.rows import Row
from gnothi.stats.intervals import mean


@dataclass(frozen=True, slots=True)
class SentenceAnswers:
    """Of ``n`` answers so many are ``sentences``; their mean exact match and accuracy."""

    n: int
    sentences: int
    em: float
    accuracy: float


def sentence_answers(rows: Sequence[Row]) -> SentenceAnswers | None:
    """Where most answers are sentences, few gold answers are, and exact match gives less than accuracy; else None."""
    short = [row for row in rows if row.metrics and row.gold and not any(map(sentence_like, row.gold))]
    sentences = sum(sentence_like(row.answer or "") for row in short)
    if 2 * sentences <= len(short):
        return None
    em, accuracy = (mean([row.metrics[metric] for row in short]) or 0.0 for metric in ("em", "accuracy"))
    return SentenceAnswers(len(short), sentences, em, accuracy) if em < accuracy else None


def check_exact_match(rows: Sequence[Row], metric: str) -> None:
    """Raises InvalidInput where exact match is to judge answers of which it misses most that are right."""
    counts = sentence_answers(rows) if metric == "em" else None
    if counts is not None and 2 * counts.em < counts.accuracy:
        raise InvalidInput(
            f"cannot calibrate by exact match: {counts.sentences} of {counts.n} answers read like sentences, so that it counts "
            f"{counts.em:.0%} of them as right, though a right answer occurs in {counts.accuracy:.0%}. Nothing was written. "
            "Judge by that instead: <--metric accuracy>. (Or make answers shorter: <--set reason=false>, "
            "<--set model.renderer=plain>.)"
        )

"""Accuracy, as self-knowledge work uses the word: a normalised gold answer occurs inside the normalised answer."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.metrics.normalise import normalise
from gnothi.metrics.spelling import alike
from gnothi.metrics.yes_no import NO, YES, verdict


def accuracy(answer: str, golds: Sequence[str]) -> float:
    """1.0 or 0.0. Kinder than exact match to models that answer in sentences; containment is of characters.

    A gold answer yes or no counts if that is what the answer says (``yes_no.verdict``): "no" is in "unknown" and in "not", too.
    So on StrategyQA this is the official accuracy. A gold answer that normalises to nothing is in every string, so it
    counts only against an answer that does too. Dashes, apostrophes, accents and widths count as the same (``alike``).
    """
    given = normalise(alike(answer))
    return float(any(_right(answer, given, normalise(alike(gold))) for gold in golds))


def _right(answer: str, given: str, gold: str) -> bool:
    if gold in (YES, NO):
        return verdict(answer) == gold
    return given == gold or (gold != "" and gold in given)


def contained(answer: str, golds: Sequence[str]) -> float:
    """1.0 if a normalised gold answer occurs in the normalised answer, yes and no like any other: how AdaRAGUE scores.

    As in ``accuracy``, a gold answer that normalises to nothing counts only against an answer that does too."""
    given = normalise(answer)
    return float(any(gold in given if gold else not given for gold in map(normalise, golds)))

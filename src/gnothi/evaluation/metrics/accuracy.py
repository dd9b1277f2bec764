"""Accuracy, as self-knowledge work uses the word: a normalised gold answer occurs inside the normalised answer."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.evaluation.metrics.normalise import normalise


def accuracy(answer: str, golds: Sequence[str]) -> float:
    """1.0 or 0.0. Kinder than exact match to models that answer in sentences; containment is of characters.

    A gold answer that normalises to nothing is in every string, so it counts only against an answer that does too.
    """
    given = normalise(answer)
    return float(any(given == gold or (gold != "" and gold in given) for gold in map(normalise, golds)))

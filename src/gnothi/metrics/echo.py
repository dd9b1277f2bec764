"""Answers that only say the question again, in which a right answer happens to stand."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.metrics.normalise import tokens

_BEYOND = 2


def echoes(answer: str, question: str, golds: Sequence[str]) -> bool:
    """Whether an answer is a stretch of the question that holds a right answer and at least two words more, as in "Hamlet or
    Macbeth", asked which of them came first. Accuracy counts it as right, though nothing was chosen.

    A right answer with one word beside it ("Mike Muir" for "Muir") is no echo; neither is one among words of its own.
    """
    said, asked = tokens(answer), tokens(question)
    if not any(asked[at : at + len(said)] == said for at in range(len(asked) - len(said) + 1)):
        return False
    right = [gold for gold in map(tokens, golds) if gold and " ".join(gold) in " ".join(said)]
    return bool(right) and all(len(said) >= len(gold) + _BEYOND for gold in right)

"""Hedging: words by which a reply says itself that it is not sure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import gnothi

HEDGES = frozenset(
    "apparently could likely may maybe might perhaps possibly presumably probably seems somewhere unsure".split()
)


@gnothi.signal(threshold=0.05, samples=False)  # one word in twenty
def hedging(question: str, answers: Sequence[str]) -> float | None:  # noqa: ARG001
    """The share of words in the reply that hedge, in [0, 1]; None for a blank one."""
    return share(answers[0])


def share(text: str) -> float | None:
    words = re.findall(r"\w+", text.lower())
    return sum(word in HEDGES for word in words) / len(words) if words else None

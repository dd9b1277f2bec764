"""Hedging: words by which a reply says itself that it is not sure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from gnothi.signals.base import Continued, Read
from gnothi.types import Capabilities

HEDGES = frozenset(
    "apparently could likely may maybe might perhaps possibly presumably probably seems somewhere unsure".split()
)


def hedging(text: str) -> float:
    """The share of words that hedge, in [0, 1]; infinity for a blank text."""
    words = re.findall(r"\w+", text.lower())
    return sum(word in HEDGES for word in words) / len(words) if words else float("inf")


@dataclass(frozen=True, slots=True)
class Hedging(Read):
    """Read off the reply, so that ``panel`` measures it beside the others at no cost. Text is enough: it needs nothing."""

    name: ClassVar[str] = "hedging"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.05  # one word in twenty

    def read(self, said: Continued) -> float:
        return hedging(said.greedy.text)

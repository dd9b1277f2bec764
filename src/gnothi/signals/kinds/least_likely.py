"""Doubt about the weakest token of a reply: FLARE's trigger (Jiang et al. 2023, section 3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued
from gnothi.types import Capabilities, Generation


def least_likely(generation: Generation) -> float:
    """1 - the smallest token probability, in [0, 1]; infinity for a blank text or one without log-probabilities."""
    if not generation.text.strip() or not generation.tokens:
        return float("inf")
    return 1.0 - math.exp(min(token.logprob for token in generation.tokens))


@dataclass(frozen=True, slots=True)
class LeastLikely(ComputedSignal):
    """A reply is as uncertain as its weakest token, so a longer one is less certain."""

    name: ClassVar[str] = "least_likely"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 0.2  # θ = 0.8

    def compute(self, continued: Continued) -> float:
        return least_likely(continued.greedy)

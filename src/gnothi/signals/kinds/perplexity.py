"""Perplexity of the greedy continuation (SeaKR, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued
from gnothi.types import Capabilities, Generation


def perplexity(logprobs: Sequence[float]) -> float:
    """exp of the mean negative log-probability (natural logarithm) per token; infinity for no tokens. At least 1."""
    if not logprobs:
        return float("inf")
    mean = -sum(logprobs) / len(logprobs)
    return math.exp(mean) if mean < 700 else float("inf")


def generation_perplexity(generation: Generation) -> float:
    """Perplexity of what was generated; infinity for a blank text or one whose backend gives no log-probabilities."""
    if not generation.text.strip():
        return float("inf")
    return perplexity([token.logprob for token in generation.tokens])


def mean_probability(generation: Generation) -> float:
    """The geometric mean of the token probabilities, in [0, 1]; 0 for a blank text, or without log-probabilities."""
    value = generation_perplexity(generation)
    return 0.0 if math.isinf(value) else 1.0 / value


@dataclass(frozen=True, slots=True)
class Perplexity(ComputedSignal):
    name: ClassVar[str] = "perplexity"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 1.2

    def compute(self, continued: Continued) -> float:
        return generation_perplexity(continued.greedy)

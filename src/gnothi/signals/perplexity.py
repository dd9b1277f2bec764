"""Perplexity of the greedy continuation (SeaKR, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.types import Capabilities, Decoding, Generation, Prompt


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


@dataclass(frozen=True, slots=True)
class Perplexity:
    name: ClassVar[str] = "perplexity"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 1.2

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        greedy = await model.generate(prompt, decoding)
        return Measured(greedy, generation_perplexity(greedy))

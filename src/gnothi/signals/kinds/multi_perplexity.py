"""Mean perplexity of sampled continuations (SeaKR, section 5.1); the code of SeaKR's authors computes it under the name
ln_entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued, Sampling
from gnothi.signals.kinds.perplexity import perplexity
from gnothi.types import Capabilities, Generation


def mean_perplexity(samples: Sequence[Sequence[float]]) -> float:
    """Mean perplexity of samples given as token log-probabilities. Empty samples are dropped; infinity when none is left."""
    values = [perplexity(logprobs) for logprobs in samples if logprobs]
    return fmean(values) if values else float("inf")


def spoken(generations: Sequence[Generation]) -> list[list[float]]:
    """Token log-probabilities of the generations that say anything."""
    return [[token.logprob for token in generation.tokens] for generation in generations if generation.text.strip()]


@dataclass(frozen=True, slots=True)
class MultiPerplexity(ComputedSignal):
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "multi_perplexity"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 1.3

    def compute(self, continued: Continued) -> float:
        return mean_perplexity(spoken(continued.samples.generations))

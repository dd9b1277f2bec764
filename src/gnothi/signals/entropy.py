"""Uncertainty of sampled continuations from their token probabilities (SeaKR, section 5.1).

``multi_perplexity`` averages the samples' perplexities; it is also what the code of SeaKR's authors computes under the name
ln_entropy. ``ln_entropy`` is the length-normalised predictive entropy of Malinin and Gales (2020): the average, not of the
perplexities, but of their logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar

from gnothi.signals.base import Continued, Read, Sampling
from gnothi.signals.perplexity import perplexity
from gnothi.types import Capabilities, Generation


def mean_perplexity(samples: Sequence[Sequence[float]]) -> float:
    """Mean perplexity of samples given as token log-probabilities. Empty samples are dropped; infinity when none is left."""
    values = [perplexity(logprobs) for logprobs in samples if logprobs]
    return fmean(values) if values else float("inf")


def length_normalized_entropy(samples: Sequence[Sequence[float]]) -> float:
    """Monte Carlo estimate, in nats per token, of -Σ p(y) ln p(y) / length(y) from samples y ~ p given as token
    log-probabilities. Empty samples are dropped; infinity when none is left. At least 0."""
    values = [-fmean(logprobs) for logprobs in samples if logprobs]
    return fmean(values) if values else float("inf")


def _spoken(generations: Sequence[Generation]) -> list[list[float]]:
    return [[token.logprob for token in generation.tokens] for generation in generations if generation.text.strip()]


@dataclass(frozen=True, slots=True)
class MultiPerplexity(Read):
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "multi_perplexity"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 1.3

    @property
    def drawn(self) -> Sampling:
        return self.sampling

    def read(self, said: Continued) -> float:
        return mean_perplexity(_spoken(said.samples.generations))


@dataclass(frozen=True, slots=True)
class LengthNormalizedEntropy(Read):
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "ln_entropy"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 0.25

    @property
    def drawn(self) -> Sampling:
        return self.sampling

    def read(self, said: Continued) -> float:
        return length_normalized_entropy(_spoken(said.samples.generations))

"""Length-normalised predictive entropy of sampled continuations (Malinin and Gales 2020; SeaKR, section 5.1): the average of
their mean negative log-probabilities, so of the logarithms of their perplexities.

It is an expectation under the model, so samples have to be drawn from the model as it is: ``top_k=0``, ``top_p=1`` and
``temperature=1``. SeaKR's defaults cut samples at top-k 50 and top-p 0.9 while probabilities are those without cuts (within
them in the code of its authors): unlikely continuations are then missing, and the number is too low, by about a fifth on the
laboratory's questions. There it tells wrong answers from right ones equally well either way. A threshold holds for one of the
two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued, Sampling
from gnothi.signals.kinds.multi_perplexity import spoken
from gnothi.types import Capabilities


def length_normalized_entropy(samples: Sequence[Sequence[float]]) -> float:
    """Monte Carlo estimate, in nats per token, of -Σ p(y) ln p(y) / length(y) from samples y ~ p given as token
    log-probabilities. Empty samples are dropped; infinity when none is left. At least 0. For samples of a distribution other
    than p (cut, or of another temperature) it is a cross-entropy: an estimate of nothing that Malinin and Gales define."""
    values = [-fmean(logprobs) for logprobs in samples if logprobs]
    return fmean(values) if values else float("inf")


@dataclass(frozen=True, slots=True)
class LengthNormalizedEntropy(ComputedSignal):
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "ln_entropy"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 0.25

    def compute(self, continued: Continued) -> float:
        return length_normalized_entropy(spoken(continued.samples.generations))

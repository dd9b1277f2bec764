"""Disagreement of sampled continuations, from their texts alone: works with any model (KEQA, section 3; Wang et al. 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued, Sampling
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Capabilities


def disagreement(texts: Sequence[str]) -> float:
    """1 - share of the largest group of equal normalised texts, in [0, 1]. Texts that say nothing or "unknown" count
    in the denominator but form no group; infinity for no texts."""
    if not texts:
        return float("inf")
    groups = Counter(normalized(text) for text in texts if not says_nothing(text))
    largest = max(groups.values(), default=0)
    return 1.0 - largest / len(texts)


@dataclass(frozen=True, slots=True)
class Consistency(ComputedSignal):
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "consistency"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.2  # known when 4 of 5 agree, as KEQA's alpha = 0.8

    def compute(self, continued: Continued) -> float:
        return disagreement([generation.text for generation in continued.samples.generations])

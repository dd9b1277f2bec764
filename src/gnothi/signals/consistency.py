"""Disagreement of sampled continuations, from their texts alone: works with any model (KEQA, section 3; Wang et al. 2023)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from gnothi.concurrency import both
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured, Sampling
from gnothi.types import Capabilities, Decoding, Prompt

_ARTICLES = frozenset({"a", "an", "the"})
# A reply that names no answer agrees with none.
NO_ANSWER = frozenset({"", "unknown", "i dont know", "i do not know", "no i dont know", "no i do not know", "not known"})


def normalized(text: str) -> str:
    """The form in which texts count as equal: Unicode-folded, lower case, without punctuation, articles and extra spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(c for c in re.sub(r"['’]", "", folded) if not unicodedata.combining(c))
    words = re.sub(r"[^\w\s]|_", " ", letters).split()
    return " ".join(word for word in words if word not in _ARTICLES) or " ".join(words)


def disagreement(texts: Sequence[str]) -> float:
    """1 - share of the largest group of equal normalised texts, in [0, 1]. Texts that say nothing or "unknown" count
    in the denominator but form no group; infinity for no texts."""
    if not texts:
        return float("inf")
    groups = Counter(form for form in map(normalized, texts) if form not in NO_ANSWER)
    largest = max(groups.values(), default=0)
    return 1.0 - largest / len(texts)


@dataclass(frozen=True, slots=True)
class Consistency:
    sampling: Sampling = field(default_factory=Sampling)

    name: ClassVar[str] = "consistency"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.2  # known when 4 of 5 agree, as KEQA's alpha = 0.8

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        greedy, samples = await both(
            model.generate(prompt, decoding), model.sample(prompt, self.sampling.samples, self.sampling.decoding(decoding))
        )
        return Measured(greedy, disagreement([generation.text for generation in samples.generations]))

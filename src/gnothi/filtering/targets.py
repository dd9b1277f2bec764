"""Sentences measured against a text they should lead to: does one hold it, share its words, make it likelier?
(FILCO: Wang et al. 2023, arXiv 2311.08377, section 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gnothi.concurrency import gather
from gnothi.filtering.self_knowledge import pmi
from gnothi.filtering.sentences import Sentence
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Prompt


def includes(text: str, targets: Sequence[str]) -> float:
    """1 where a target occurs in the text as whole words, whatever case, punctuation and articles; else 0."""
    padded = f" {normalized(text)} "
    return float(any(target and f" {target} " in padded for target in map(normalized, targets)))


def overlap(text: str, other: str) -> float:
    """Unigram F1 of two texts, in [0, 1]: the harmonic mean of the shares of each one's words that the other has, too."""
    first, second = Counter(normalized(text).split()), Counter(normalized(other).split())
    shared = sum((first & second).values())
    return 2 * shared / (first.total() + second.total()) if shared else 0.0


async def cxmi(model: LanguageModel, prompt: Prompt, target: str, sentences: Sequence[Sentence]) -> list[float]:
    """log P(target | sentence, prompt) - log P(target | prompt) of each sentence, all scored at a time (nats)."""
    shown = [replace(prompt, passages=(sentence.passage,)) for sentence in sentences]
    before, *after = await gather(*(model.score(one, (target,)) for one in (prompt, *shown)))
    return [pmi(one[0].logprob, before[0].logprob) for one in after]

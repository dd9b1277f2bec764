"""Sentences that lead to an answer: those that hold it, share its words, or make it likelier (FILCO: Wang et al. 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.filtering.self_knowledge import fall_back, filtered, pmi
from gnothi.filtering.sentences import LANGUAGE, Sentence, choose, rejoined, sentences_of
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Passage, Prompt, Question


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
    prompts = [replace(prompt, passages=(sentence.passage,)) for sentence in sentences]
    before, *after = await gather(*(model.score(variant, (target,)) for variant in (prompt, *prompts)))
    return [pmi(scores[0].logprob, before[0].logprob) for scores in after]


Measure = Literal["strinc", "lexical", "cxmi"]


@dataclass(frozen=True, slots=True)
class Leading:
    """Keeps the ``spans`` best sentences (None: all) that measure at least ``threshold``, and that hold the answer where the
    measure is strinc, in their order; the first passage as it is where none does (the authors' code).

    ``model`` scores answers for the measure cxmi, after ``prompt``, which asks the question without passages. Emits Filtered
    with the measure as kind."""

    measure: Measure
    model: LanguageModel
    threshold: float = 0.0
    spans: int | None = 1
    language: str = LANGUAGE

    async def __call__(
        self, question: Question, prompt: Prompt, passages: Sequence[Passage], targets: Sequence[str]
    ) -> tuple[Passage, ...]:
        """``targets`` holds at least one answer to look for."""
        sentences = sentences_of(passages, self.language)
        scores = await self._scores(question, prompt, sentences, targets)
        best = choose(scores, self._passes)
        places = sorted(best[: self.spans])
        events.emit(filtered(self.measure, question, sentences, scores, set(places), self.threshold))
        if not places:
            return fall_back(tuple(passages[:1]), self.measure, question, scores, self.threshold)
        return rejoined(sentences[place] for place in places)

    def _passes(self, score: float) -> bool:
        return score >= self.threshold and (score > 0 or self.measure != "strinc")

    async def _scores(
        self, question: Question, prompt: Prompt, sentences: Sequence[Sentence], targets: Sequence[str]
    ) -> list[float]:
        if self.measure == "strinc":
            return [includes(sentence.text, targets) for sentence in sentences]
        if self.measure == "lexical":
            statements = [f"{question.text} {target}" for target in targets]
            return [
                max(overlap(f"{sentence.source.title} {sentence.text}", text) for text in statements) for sentence in sentences
            ]
        return await cxmi(self.model, prompt, targets[0], sentences)

"""The best sentence: an answer from memory, or from one sentence that a search found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from gnothi.filtering.sentences import split
from gnothi.methods.steps.from_memory import GatedSettings
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.settings import check_ranges, needs_of, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Capabilities, Passage, Question


@dataclass(frozen=True, slots=True)
class BestSentence(GatedSettings):
    """Answers from memory where its gate trusts that, else from the sentence that shares most words with the question."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(3, "Passages to look for the sentence in.", at_least=1)

    name: ClassVar[str] = "best_sentence"

    def __post_init__(self) -> None:
        check_ranges(self)
        self.check_gate(self.model.profile.thresholds)

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | needs_of(self.gate)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if (answer := await self.from_memory(self.model, question)) is not None:
            return answer
        found = await self.retriever.search(question.text, self.k)
        return await self.read(self.model, question, best_sentence(question.text, [one.passage for one in found]))


def best_sentence(question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The sentence with most words of the question, as a passage under its title; the first of equal ones, none without any."""
    asked = _words(question)
    sentences = [replace(passage, text=text) for passage in passages for text in split(passage.text)]
    best = max(sentences, key=lambda one: len(asked & _words(one.text)), default=None)
    return () if best is None else (best,)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))

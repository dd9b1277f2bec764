"""Retrieval-augmented generation that always retrieves, once, with the question (Lewis et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.fields import setting
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.searching import search
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Prompt, Question


@dataclass(frozen=True, slots=True)
class RetrieveAlways(ReaderSettings):
    """One search with the question, then an answer from the passages found."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(3, "Passages to retrieve.", at_least=1)

    name: ClassVar[str] = "rag"
    usual_tokens: ClassVar[int] = 1_500

    async def __call__(self, question: Question) -> Answer:
        return await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question, behind what the search found."""
        require_text(question)
        return self.reading(question, self.selected(question, await search(self.retriever, question.text, self.k)))

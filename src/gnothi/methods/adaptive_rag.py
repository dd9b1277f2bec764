"""Adaptive-RAG (Jeong et al. 2024, arXiv 2403.14403): how complex the question looks decides how much is retrieved.

A classifier trained by ``gnothi train complexity`` sends a question to memory (A), to one retrieval (B) or to retrieval step by
step (C, which is IRCoT).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from gnothi import events
from gnothi.fields import resource, setting
from gnothi.filtering.complexity import ComplexitySource
from gnothi.methods.ircot import IRCoT
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.searching import search
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Passage, Question


@dataclass(frozen=True, slots=True)
class AdaptiveRAG(ReaderSettings):
    """A classifier of the question chooses: from memory, after one retrieval, or by retrieval in steps."""

    model: LanguageModel
    retriever: Retriever
    classifier: ComplexitySource | None = resource("What tells how much retrieval a question takes.", required=True)
    k: int = setting(3, "Passages of the one retrieval.", at_least=1)
    steps_k: int = setting(4, "In steps: passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "In steps: sentences of the chain.", at_least=1)
    max_passages: int = setting(15, "In steps: passages collected over all of them.", at_least=1)

    follows: Literal["paper", "code"] = setting(
        "paper", "How IRCoT searches: as in its paper, or its code (also the one search)."
    )

    name: ClassVar[str] = "adaptive_rag"
    usual_tokens: ClassVar[int] = 8_000

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        assert self.classifier is not None
        chances = await self.classifier.complexity(question.text)
        strategy = chances.strategy
        verdict = "trust" if strategy == "none" else "retrieve"
        events.emit(events.Decided("retrieve", "complexity", chances.lead, None, verdict))
        events.emit(events.Decided("strategy", "", None, None, strategy))
        if strategy == "none":
            return await self.read(self.model, question)
        if strategy == "once":
            return await self.read(self.model, question, self.selected(question, await self._once(question)))
        return await self._in_steps(question)

    async def _once(self, question: Question) -> tuple[Passage, ...]:
        if self.follows == "code":
            return await replace(self._in_steps, k=self.k).first(question)
        return await search(self.retriever, question.text, self.k)

    @property
    def _in_steps(self) -> IRCoT:
        return IRCoT(
            self.model,
            self.retriever,
            k=self.steps_k,
            max_steps=self.max_steps,
            max_passages=self.max_passages,
            follows=self.follows,
            max_tokens=self.max_tokens,
            extract=self.extract,
            extra_calls=self.extra_calls,
        )

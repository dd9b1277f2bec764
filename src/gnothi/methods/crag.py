"""CRAG: corrective retrieval-augmented generation (Yan et al. 2024, arXiv 2401.15884).

An evaluator grades what was found: correct, it is refined; incorrect, it gives way to a search elsewhere; ambiguous, both.
The paper searches the web there; here it is a second search of an index, with keywords. Its evaluator is a fine-tuned T5 that
reads question and passage; here it is a cross-encoder, or without one a model's P("Yes") when asked if a passage is useful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnothi import events
from gnothi.errors import InvalidSetting
from gnothi.fields import resource, setting
from gnothi.filtering.evaluator import Strips, fit, relevance
from gnothi.methods.steps.prompts import USEFUL, require_text
from gnothi.methods.steps.queries import keywords
from gnothi.methods.steps.reader import SentenceSettings
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.searching import search
from gnothi.protocols import LanguageModel, Reranker, Retriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question

SCORING = Capabilities(scoring=True)


@dataclass(frozen=True, slots=True)
class CorrectiveRAG(SentenceSettings):
    """Grades what was found: refines it, looks elsewhere, or does both."""

    model: LanguageModel
    retriever: Retriever
    evaluator: LanguageModel | None = resource("Model that grades passages.")
    reranker: Reranker | None = resource(
        "Cross-encoder that grades passages in a model's place (logistic function of its score)."
    )
    elsewhere: Retriever | None = resource("Index searched in place of the web.")
    k: int = setting(5, "Passages to retrieve, and again to retrieve elsewhere.", at_least=1)
    upper: float = setting(0.5, "Correct: a passage is graded at least this.", at_least=0.0, at_most=1.0)
    lower: float = setting(0.1, "Incorrect: no passage is graded at least this.", at_least=0.0, at_most=1.0)
    strip_threshold: float = setting(
        0.0, "Refining keeps sentences graded at least this (0: all, as published).", at_least=0.0, at_most=1.0
    )
    strips: int = setting(5, "Refining keeps at most so many sentences.", at_least=1)

    name: ClassVar[str] = "crag"
    usual_tokens: ClassVar[int] = 12_000

    def check_settings(self) -> None:
        if self.lower > self.upper:
            raise InvalidSetting(f"settings 'lower' and 'upper': got {self.lower} and {self.upper}, expected lower <= upper.")
        if self.evaluator is not None and self.reranker is not None:
            raise InvalidSetting("settings 'evaluator' and 'reranker': got both, expected one of them to grade passages.")
        require(self.name, "evaluator", self.evaluator, SCORING)

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | (SCORING if self.evaluator is None and self.reranker is None else Capabilities())

    async def __call__(self, question: Question) -> Answer:
        return await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question, behind what was found and refined."""
        require_text(question)
        passages = await search(self.retriever, question.text, self.k)
        verdict = await self._evaluate(question, passages)
        refined: tuple[Passage, ...] = ()
        if verdict != "incorrect":
            refined = await self._refine(question, passages)
        if verdict != "correct":
            refined += await self._refine(question, await self._look_elsewhere(question, passages))
        return self.reading(question, refined)

    async def _evaluate(self, question: Question, passages: Sequence[Passage]) -> str:
        """Correct, ambiguous or incorrect: by the best grade."""
        grades = await self._grades(question, passages)
        best = max(grades, default=-1.0)
        verdict = "correct" if best >= self.upper else "ambiguous" if best >= self.lower else "incorrect"
        threshold = self.upper if verdict == "correct" else self.lower
        events.emit(events.Decided("evaluate", self._grader, best if grades else None, threshold, verdict))
        return verdict

    async def _refine(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """The best sentences ("strips"), in their order."""
        return await Strips(self._grades, self._grader, self.strip_threshold, self.strips, self.language)(question, passages)

    async def _look_elsewhere(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """The best passages for the question's keywords; in the same index, those not found before."""
        known = set() if self.elsewhere else {passage.id for passage in passages}
        return await search(self.elsewhere or self.retriever, keywords(question.text), self.k, known)

    async def _grades(self, question: Question, passages: Sequence[Passage]) -> list[float]:
        if self.reranker is not None:
            return await fit(self.reranker, question.text, passages)
        return await relevance(self.evaluator or self.model, USEFUL, question.text, passages)

    @property
    def _grader(self) -> str:
        return "useful" if self.reranker is None else "reranker"

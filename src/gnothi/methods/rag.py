"""Retrieval-augmented generation that always retrieves, once, with the question (Lewis et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.methods.answers import as_choice, short_answer
from gnothi.methods.chain import conclude
from gnothi.methods.prompts import ANSWER, REASON, ask, require_text
from gnothi.methods.settings import CHAIN_STOPS, SHORT_STOPS, SignalSettings, needs_of, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Question


@dataclass(frozen=True, slots=True)
class RetrieveAlways(SignalSettings):
    """One search with the question, then an answer from the passages found."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(3, "Passages to retrieve.", at_least=1)
    reason: bool = setting(True, "Reason step by step before answering; false: a short answer at once.")
    signal: SignalName | None = setting(None, "Uncertainty of the answer; none: perplexity where the model tells it.")

    name: ClassVar[str] = "rag"

    @property
    def needs(self) -> Capabilities:
        return needs_of(self.signal)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        passages = tuple(scored.passage for scored in await self.retriever.search(question.text, self.k))
        prompt = ask(REASON if self.reason else ANSWER, question, passages)
        decoding = self.decoding(CHAIN_STOPS if self.reason else SHORT_STOPS)
        measured = await self.make_signal(self.signal).measure(self.model, prompt, decoding)
        if self.reason:
            conclusion = await conclude(self.model, prompt, measured.greedy, self.decoding(SHORT_STOPS))
            answer, rationale = conclusion.answer, conclusion.rationale
        else:
            answer, rationale = short_answer(measured.greedy.text), ""
        return Answer(as_choice(answer, question.choices), rationale, passages, measured.score)

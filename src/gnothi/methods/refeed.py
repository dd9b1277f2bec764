"""ReFeed: retrieval feedback (Yu et al. 2023, arXiv 2305.14002).

The model answers first; what it said is searched with, together with the question; then it answers again, from what was found.
Several first answers are searched with (diverse retrieval); of the first and the last answer the likelier counts (ensemble).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.concurrency import both
from gnothi.fields import resource, setting
from gnothi.filtering.least_uncertain import Candidate, least_uncertain
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import DrawingSettings
from gnothi.methods.steps.searching import in_turns
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Sampling
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Capabilities, Prompt, Question


@dataclass(frozen=True, slots=True)
class ReFeed(DrawingSettings):
    """Answers from memory, searches with the answers, and answers again from what is found."""

    model: LanguageModel
    retriever: Retriever
    reader: LanguageModel | None = resource("Model that answers, perhaps one trained by gnothi train reader.")
    answers: int = setting(5, "First answers to search with; more than one: sampled (diverse retrieval).", at_least=1)
    k: int = setting(10, "Passages to retrieve for each answer, and to read in all.", at_least=1)
    ensemble: bool = setting(True, "Of first and last answer take the one of lower uncertainty; false: always the last.")

    name: ClassVar[str] = "refeed"
    usual_tokens: ClassVar[int] = 8_000

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | Capabilities(logprobs=self.ensemble and self.signal is None)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        reader = self.reader or self.model
        prompt = self.reading(question, model=reader)
        first, drafts = await both(self.reply(reader, prompt), self._drafts(prompt))
        queries = [question.text if says_nothing(draft) else f"{question.text} {draft}" for draft in drafts]
        passages = await in_turns(self.retriever, queries, self.k)
        if not passages:
            return first
        last = await self.read(reader, question, passages)
        if not self.ensemble:
            return last
        answers = {"memory": first, "passages": last}
        best = least_uncertain([Candidate.of(source, answer) for source, answer in answers.items()])
        return answers[best.strategy]

    async def _drafts(self, prompt: Prompt) -> list[str]:
        """What the model says from memory, each reply on one line."""
        reader = self.reader or self.model
        if self.answers == 1:
            replies = [await reader.generate(prompt, self.reply_decoding(prompt))]
        else:
            sampling = Sampling(self.answers, self.temperature, self.top_k, self.top_p)
            replies = list(
                (await reader.sample(prompt, self.answers, sampling.decoding(self.reply_decoding(prompt)))).generations
            )
        return [" ".join(reply.text.split()) for reply in replies]

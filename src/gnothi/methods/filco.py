"""FILCO: learning to filter context (Wang et al. 2023, arXiv 2311.08377), with its three measures of a sentence.

The paper trains a filter to imitate what a measure selects with the gold answer in hand. Here the measure itself selects,
against the model's own draft, or, as the bound that the paper calls silver, against the gold answer (``oracle``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.fields import setting
from gnothi.filtering.leading import Leading, Measure
from gnothi.methods.steps.prompts import ANSWER, ask, require_text
from gnothi.methods.steps.reader import SentenceSettings
from gnothi.methods.steps.searching import search
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Capabilities, Prompt, Question


@dataclass(frozen=True, slots=True)
class Filco(SentenceSettings):
    """Reads only the sentences that hold a draft answer, share words with it, or make it likelier."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    measure: Measure = setting(
        "strinc", "A sentence counts by whether it holds the answer; by words shared with question and answer; by CXMI."
    )
    threshold: float = setting(0.0, "A sentence stays only when it measures at least this.")
    spans: int | None = setting(1, "Sentences to keep (none: all above the threshold).", at_least=1)
    oracle: bool = setting(False, "Measure against the gold answers: a bound, not a method. Needs questions that have some.")

    name: ClassVar[str] = "filco"
    usual_tokens: ClassVar[int] = 3_000

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | Capabilities(scoring=self.measure == "cxmi")

    async def __call__(self, question: Question) -> Answer:
        return await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question, behind the sentences that were kept."""
        require_text(question)
        passages = await search(self.retriever, question.text, self.k)
        targets = question.answers if self.oracle else await self.draft(self.model, question, passages)
        filtered = passages
        if targets:  # without an answer to look for there is nothing to filter by
            leading = Leading(self.measure, self.model, self.threshold, self.spans, self.language)
            filtered = await leading(question, ask(ANSWER, question), passages, targets)
        return self.reading(question, filtered)

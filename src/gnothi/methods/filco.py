"""FILCO: learning to filter context (Wang et al. 2023, arXiv 2311.08377), with its three measures of a sentence.

The paper trains a filter to imitate what a measure selects with the gold answer in hand. Here the measure itself selects,
against the model's own draft, or, as the bound that the paper calls silver, against the gold answer (``oracle``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.filtering.self_knowledge import filtered
from gnothi.filtering.sentences import Sentence, choose, rejoined, sentences_of
from gnothi.filtering.targets import cxmi, includes, overlap
from gnothi.methods.answers import short_answer
from gnothi.methods.prompts import ANSWER, ask, require_text
from gnothi.methods.reader import ReaderSettings
from gnothi.methods.settings import SHORT_STOPS, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question


@dataclass(frozen=True, slots=True)
class Filco(ReaderSettings):
    """Reads only the sentences that hold a draft answer, share words with it, or make it likelier."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    measure: Literal["strinc", "lexical", "cxmi"] = setting(
        "strinc", "A sentence counts by whether it holds the answer; by words shared with question and answer; by CXMI."
    )
    threshold: float = setting(0.0, "A sentence stays only when it measures more than this.")
    spans: int | None = setting(1, "Sentences to keep (none: all above the threshold).", at_least=1)
    oracle: bool = setting(False, "Measure against the gold answers: a bound, not a method. Needs questions that have some.")
    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")

    name: ClassVar[str] = "filco"

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | Capabilities(scoring=self.measure == "cxmi")

    async def __call__(self, question: Question) -> Answer:
        return await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question, behind the sentences that were kept."""
        require_text(question)
        found = tuple(scored.passage for scored in await self.retriever.search(question.text, self.k))
        targets = question.answers if self.oracle else await self._draft(question, found)
        # Without an answer to look for there is nothing to filter by.
        kept = await self._filter(question, found, targets) if targets else found
        return self.reading(question, kept)

    async def _draft(self, question: Question, passages: Sequence[Passage]) -> tuple[str, ...]:
        if not passages:
            return ()
        reply = await self.model.generate(ask(ANSWER, question, passages), self.decoding(SHORT_STOPS))
        answer = short_answer(reply.text)
        return () if says_nothing(answer) else (answer,)

    async def _filter(self, question: Question, passages: Sequence[Passage], targets: Sequence[str]) -> tuple[Passage, ...]:
        sentences = sentences_of(passages, self.language)
        scores = await self._scores(question, sentences, targets)
        best = choose(sentences, scores, lambda score: score > self.threshold)
        kept = sorted(best[: self.spans])
        events.emit(filtered(self.measure, question, sentences, scores, set(kept), self.threshold))
        return rejoined(sentences[place] for place in kept)

    async def _scores(self, question: Question, sentences: Sequence[Sentence], targets: Sequence[str]) -> list[float]:
        if self.measure == "strinc":
            return [includes(sentence.text, targets) for sentence in sentences]
        if self.measure == "lexical":
            wanted = [f"{question.text} {target}" for target in targets]
            return [max(overlap(f"{one.source.title} {one.text}", text) for text in wanted) for one in sentences]
        return await cxmi(self.model, ask(ANSWER, question), targets[0], sentences)

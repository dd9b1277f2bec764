"""The best sentences ("strips") of what was found, each graded by itself (CRAG: Yan et al. 2024)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.filtering.self_knowledge import filtered
from gnothi.filtering.sentences import LANGUAGE, choose, rejoined, sentences_of
from gnothi.types import Passage, Question

Grade = Callable[[Question, Sequence[Passage]], Awaitable[Sequence[float]]]
"""How well each passage fits the question."""


@dataclass(frozen=True, slots=True)
class Strips:
    """Keeps at most ``most`` sentences (None: all) graded above ``threshold``, in their order. Emits Filtered with ``kind``."""

    grade: Grade
    kind: str
    threshold: float
    most: int | None
    language: str = LANGUAGE

    async def __call__(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        sentences = sentences_of(passages, self.language)
        grades = await self.grade(question, [sentence.passage for sentence in sentences])
        best = choose(sentences, grades, lambda grade: grade > self.threshold)
        kept = sorted(best[: self.most])
        events.emit(filtered(self.kind, question, sentences, grades, set(kept), self.threshold))
        return rejoined(sentences[place] for place in kept)

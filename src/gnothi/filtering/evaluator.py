"""How relevant a text is to a question, and the best sentences ("strips") by that: the evaluator of CRAG (Yan et al. 2024), a
judge or a cross-encoder.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.concurrency import gather
from gnothi.filtering.self_knowledge import fall_back, filtered
from gnothi.filtering.sentences import LANGUAGE, choose, rejoined, sentences_of
from gnothi.protocols import LanguageModel, Reranker
from gnothi.retrieval.wrappers import titled_text
from gnothi.signals.kinds.self_report import AFFIRMATIVE, NEGATIVE, probability_of_yes
from gnothi.types import Passage, Prompt, Question, Task


async def relevance(judge: LanguageModel, task: Task, question: str, passages: Sequence[Passage]) -> list[float]:
    """P("Yes") among "Yes" and "No" for each passage by itself, in [0, 1]; all are scored at a time."""
    prompts = [Prompt(task, question, (passage,)) for passage in passages]
    scores = await gather(*(judge.score(prompt, (AFFIRMATIVE, NEGATIVE)) for prompt in prompts))
    return [probability_of_yes(yes.logprob, no.logprob) for yes, no in scores]


async def fit(reranker: Reranker, question: str, passages: Sequence[Passage]) -> list[float]:
    """The logistic function of a re-ranker's score for each passage, in [0, 1]: a probability, if it was trained as one."""
    scores = await reranker.score(question, [titled_text(passage) for passage in passages])
    return [1 / (1 + math.exp(-score)) if score > 0 else math.exp(score) / (1 + math.exp(score)) for score in scores]


Grade = Callable[[Question, Sequence[Passage]], Awaitable[Sequence[float]]]
"""How well each passage fits the question."""


@dataclass(frozen=True, slots=True)
class Strips:
    """Keeps at most ``most`` sentences (None: all) graded at least ``threshold``, in their order; where none is, the best ones
    whatever their grade. Emits Filtered with ``kind``."""

    grade: Grade
    kind: str
    threshold: float
    most: int | None
    language: str = LANGUAGE

    async def __call__(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        sentences = sentences_of(passages, self.language)
        grades = await self.grade(question, [sentence.passage for sentence in sentences])
        best = choose(grades, lambda grade: grade >= self.threshold)
        if sentences and not best:
            best = fall_back(choose(grades, lambda _: True), self.kind, question, grades, self.threshold)
        places = sorted(best[: self.most])
        events.emit(filtered(self.kind, question, sentences, grades, set(places), self.threshold))
        return rejoined(sentences[place] for place in places)

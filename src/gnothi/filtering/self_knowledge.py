"""Self-knowledge as a filter: keep the sentences that make the model surer that it knows (SKILL-RAG, section 4.3).

PMI(s) = log P("Yes" | s, question) - log P("Yes" | question), where "Yes" begins the reply to the question whether the model
knows the answer. A sentence above the threshold stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gnothi import events
from gnothi.concurrency import gather
from gnothi.filtering.sentences import LANGUAGE, Sentence, choose, rejoined, sentences_of
from gnothi.protocols import LanguageModel
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE
from gnothi.types import Passage, Prompt, Question, Task


@dataclass(frozen=True, slots=True)
class Informative:
    """Scores every sentence of every passage, all at a time, and keeps those whose score exceeds ``threshold`` (in nats).

    With the task ``know`` the score is the PMI. Any other ``task`` is one about a passage, which has no answer without one:
    then it is the log-odds, log P("Yes" | s, question) - log P("No" | s, question), above 0 where yes is likelier than no.
    ``titles``: a sentence is shown under its passage's title. They stay in their order. At most ``most`` are kept; a passage
    of which nothing is kept is dropped. Emits Filtered with kind ``pmi`` or the task's name.
    """

    judge: LanguageModel
    task: Task = KNOW
    threshold: float = 0.0
    titles: bool = True
    language: str = LANGUAGE
    most: int | None = None

    async def __call__(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        sentences = sentences_of(passages, self.language)
        scores = await self.scores(question, sentences)
        best = choose(scores, lambda score: score > self.threshold)[: self.most]
        kind = "pmi" if self.task.name == KNOW.name else self.task.name
        events.emit(filtered(kind, question, sentences, scores, set(best), self.threshold))
        return rejoined(sentences[place] for place in sorted(best))

    async def scores(self, question: Question, sentences: Sequence[Sentence]) -> list[float]:
        """The score of each sentence, in order."""
        if not sentences:
            return []
        alone = Prompt(self.task, question.text, choices=question.choices)
        prompts = [replace(alone, passages=(self._passage(sentence),)) for sentence in sentences]
        if self.task.name != KNOW.name:
            return await gather(*(self._log_odds(prompt) for prompt in prompts))
        before, *after = await gather(*(self._log_yes(prompt) for prompt in (alone, *prompts)))
        return [pmi(logprob, before) for logprob in after]

    def _passage(self, sentence: Sentence) -> Passage:
        return sentence.passage if self.titles else replace(sentence.passage, title="")

    async def _log_yes(self, prompt: Prompt) -> float:
        return (await self.judge.score(prompt, (AFFIRMATIVE,)))[0].logprob

    async def _log_odds(self, prompt: Prompt) -> float:
        yes, no = await self.judge.score(prompt, (AFFIRMATIVE, NEGATIVE))
        return pmi(yes.logprob, no.logprob)


def pmi(informed: float, uninformed: float) -> float:
    """The difference of two log-probabilities; 0 where both are impossible."""
    return 0.0 if informed == uninformed else informed - uninformed


def filtered(
    kind: str, question: Question, sentences: Sequence[Sentence], scores: Sequence[float], places: set[int], threshold: float
) -> events.Filtered:
    """The event of a filter of sentences; ``places`` are those of the sentences that it keeps."""
    rows = tuple(
        (sentence.source.id, sentence.text, score if math.isfinite(score) else None, place in places)
        for place, (sentence, score) in enumerate(zip(sentences, scores, strict=True))
    )
    return events.Filtered(kind, question.text, rows, threshold)


# What a filter leaves when nothing passes it: as published, something all the same, and an event that says so.

T = TypeVar("T")


def fall_back(instead: T, kind: str, question: Question, scores: Sequence[float] = (), threshold: float | None = None) -> T:
    """``instead``, in place of the nothing that passed. Emits Decided with kind ``keep``, the best score if there are any, and
    the verdict ``fall_back``."""
    best = max(filter(math.isfinite, scores), default=None)
    events.emit(events.Decided("keep", kind, best, threshold, "fall_back", question.text))
    return instead

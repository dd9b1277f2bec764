"""KEQA's table 2: pairs of a model's own answers, labelled by it as meaning the same or not, and judges of such pairs.

The labels of the paper, by GPT-3.5, were not published; here they are made anew. Of each quiz the first of five sampled answers
is put beside each other one that is spelt otherwise. A pair is then a question of its own, whose answer is yes or no.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from gnothi.errors import InvalidInput
from gnothi.fields import resource, setting
from gnothi.filtering.likeness import Likeness
from gnothi.methods.registry import METHODS
from gnothi.methods.steps.parsing import yes_or_no
from gnothi.methods.steps.prompts import ANSWER, ANSWER_YES_NO, EQUIVALENT, ask
from gnothi.methods.steps.quizzes import UNKNOWN, Solved, SplitSettings, ask_in_order
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.protocols import LanguageModel
from gnothi.registry import Own
from gnothi.runs.rows import Row
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Capabilities, Decoding, Prompt, Question
from gnothi.yes_or_no import asks_yes_or_no

_MOST_QUIZZES = 20
_LABELS = {True: "yes", False: "no"}


@dataclass(frozen=True, slots=True)
class Pairs(SplitSettings):
    """Answers with pairs of answers to the question's quizzes, each with the model's own label, as JSON."""

    model: LanguageModel
    tries: int = setting(5, "Sampled answers to each quiz.", at_least=2)
    demonstrations: bool = setting(True, "Show worked examples with quizzes and pairs.")

    name: ClassVar[str] = "pairs"

    async def __call__(self, question: Question) -> Answer:
        labelled: list[tuple[str, str, str, bool]] = []

        async def solve(quiz: str) -> Solved:
            """By the commonest answer."""
            yes_no = asks_yes_or_no(quiz)
            task = ANSWER_YES_NO if yes_no else ANSWER
            shown_task = task if self.demonstrations else replace(task, demonstrations=())
            decoding = Decoding(self.max_tokens, temperature=1.0, stop=SHORT_STOPS)
            samples = await self.model.sample(ask(shown_task, Question(question.id, quiz)), self.tries, decoding)
            answers = [self.extraction.short(one.text, "" if yes_no else quiz) for one in samples.generations]
            answers = [yes_or_no(one) if yes_no else one for one in answers if not says_nothing(one)]
            forms = {normalized(one): one for one in reversed(answers)}
            for form, other in forms.items():
                if form != normalized(answers[0]):
                    same = await says_yes(self.model, self._pair(quiz, answers[0], other))
                    labelled.append((quiz, answers[0], other, same))
            if not answers:
                return Solved(quiz, UNKNOWN, "nothing")
            return Solved(quiz, forms[Counter(map(normalized, answers)).most_common(1)[0][0]], "memory")

        await ask_in_order(await self.parts_of(question, self.model, _MOST_QUIZZES), solve)
        return Answer(json.dumps(sorted(labelled), ensure_ascii=False))

    def _pair(self, quiz: str, one: str, other: str) -> Prompt:
        return Prompt(EQUIVALENT if self.demonstrations else replace(EQUIVALENT, demonstrations=()), quiz, choices=(one, other))


@dataclass(frozen=True, slots=True)
class Judge:
    """Says of the pair of answers that a question has, whether they mean the same: the model, or a likeness of texts."""

    model: LanguageModel
    likeness: Likeness | None = resource("What tells how alike the answers are, in place of the model.")
    threshold: float = setting(0.5, "From this likeness on they mean the same.")
    demonstrations: bool = setting(True, "Show the model worked examples.")

    name: ClassVar[str] = "judge"
    usual_tokens: ClassVar[int] = 1_000

    @property
    def needs(self) -> Capabilities:
        return Capabilities()

    async def __call__(self, question: Question) -> Answer:
        one, other = question.metadata["pair"]
        if self.likeness is not None:
            same = self.likeness([one], [other])[0] >= self.threshold
        else:
            task = EQUIVALENT if self.demonstrations else replace(EQUIVALENT, demonstrations=())
            same = await says_yes(self.model, Prompt(task, question.text, choices=(one, other)))
        return Answer(_LABELS[same], f"{one} | {other}")


OWN = {one.name: Own(one.name, one, METHODS.group) for one in (Pairs, Judge)}
"""By the names that recipes give them; they are no methods for questions."""


def pairs_of(rows: Sequence[Row]) -> list[Question]:
    """The pairs of a run by ``Pairs`` as questions. Raises InvalidInput where there is none."""
    pairs = [
        Question(f"{row.question_id}-{place}", quiz, (_LABELS[same],), metadata={"pair": (one, other)})
        for row in rows
        if row.answer
        for place, (quiz, one, other, same) in enumerate(json.loads(row.answer), start=1)
    ]
    if not pairs:
        raise InvalidInput("pairs of answers: got none, for every question was answered alike. Ask more questions.")
    return pairs


def best_threshold(likeness: Likeness, pairs: Sequence[Question]) -> float:
    """From which likeness on calling a pair the same is right most often, on these very pairs: the best that it could do."""
    ones, others = zip(*(pair.metadata["pair"] for pair in pairs), strict=True)
    scores = likeness(ones, others)
    labels = [pair.answers == (_LABELS[True],) for pair in pairs]

    def right(threshold: float) -> int:
        return sum((score >= threshold) == label for score, label in zip(scores, labels, strict=True))

    return max((*scores, max(scores) + 1.0), key=right)

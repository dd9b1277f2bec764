"""Adaptive-RAG's whole course against what its code does (starsuzi/Adaptive-RAG), with the settings of ``seakr/table8``.

Its code runs IRCoT's for all three strategies (``test_ircot`` holds that loop against the authors'). ``DECLARED`` says what is
left out of the comparison.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gnothi.filtering.complexity import Probabilities
from gnothi.testing.model import Scripted
from gnothi.types import Passage, Prompt, Question
from tests.methods.oracles import test_ircot as ircot
from tests.methods.oracles.authors import FAST, LONG
from tests.methods.oracles.scripts import QUESTION, Course, Outcome, Searcher, names
from tests.reproduce.planned import made, row

DECLARED = {
    **ircot.DECLARED,
    "classifier": "scripted on both sides (a T5 there)",
    "passages": "three a search, as SeaKR's paper has it; the code has 15 and 6 for FLAN-T5, 6 and 3 for GPT",
    "reader in steps": "a chain of thought over all passages, as IRCoT's; the code asks FLAN-T5 for the answer at once",
}
LABEL = ("seakr/table8", "hotpotqa", "Adaptive-RAG")


def chances(course: Course) -> Probabilities:
    draw = course.draw("chances")
    return Probabilities(*(draw.choice([0.1, 0.2, 0.4, 0.7]) for _ in range(3)))  # equal ones, too


def ours(seed: int) -> Outcome:
    course = Course(seed)

    class Classifier:
        async def complexity(self, question: str) -> Probabilities:
            assert question == QUESTION
            return chances(course)

    def reply(prompt: Prompt) -> str:
        return ircot.says(course, prompt.answer_so_far, names(prompt.passages))

    method = made(*LABEL, model=Scripted(reply), retriever=Searcher(course), classifier=Classifier())
    answer = asyncio.run(method(Question("q", QUESTION)))
    return Outcome.of(course, list(answer.evidence), answer.text)


def restated(seed: int) -> Outcome:
    course, values = Course(seed), row(*LABEL).values
    strategy = "ABC"[int(np.argmax(chances(course)))]
    if strategy == "C":
        found = ircot.collected(course, values["steps_k"], values["max_passages"], values["max_steps"])
        return ircot.read(course, found)
    passages: list[Passage] = []
    for one in course.find(ircot.terms(QUESTION), values["k"]) if strategy == "B" else ():
        if all(one.text != other.text for other in passages):
            passages.append(one)
    return Outcome.of(course, passages, ircot.says(course, "", names(passages)).split("\n")[0].strip())


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_rules(cases: int) -> None:
    assert [seed for seed in range(cases) if not ircot.same(ours(seed), restated(seed))] == []


def test_the_cases_go_every_way() -> None:
    outcomes = [restated(seed) for seed in range(FAST)]
    assert {len(one.searched) for one in outcomes} >= {0, 1, 2, 3}
    assert {len(one.kept) for one in outcomes} >= {0, 1, 2, 3, 4, 8}

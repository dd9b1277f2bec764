"""CRAG's whole course against its authors' (HuskyInSalt/CRAG), with the settings of ``skill-rag/table1``.

``DECLARED`` says what is left out of the comparison.
"""

from __future__ import annotations

import asyncio
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gnothi.methods.steps.parsing import split_sentences
from gnothi.methods.steps.prompts import USEFUL
from gnothi.methods.steps.queries import keywords
from gnothi.testing.model import Scripted
from gnothi.types import Passage, Prompt, Question
from tests.methods.oracles.authors import FAST, LONG, function
from tests.methods.oracles.scripts import ANSWERS, QUESTION, Course, Searcher
from tests.reproduce.planned import made, row

DECLARED = {
    "grader": "P(Yes) of the model, upper 0.5 and lower 0.1; the code has a fine-tuned T5 and thresholds by data set",
    "elsewhere": "the same index, by the question's words, without what was found; in the code the web, by written keywords",
    "strips": "sentences, the 5 best of each search; the code has whole passages (3) or three sentences each (6)",
    "short strips": "the code grades a strip of fewer than four words lowest; the scripts have none",
    "order": "as in the passages here; best first in the code: sets are compared",
    "nothing found": "incorrect; the code is given passages",
}
LABEL = ("skill-rag/table1", "nq-dev", "CRAG")
Shown = frozenset[str]


@dataclass(frozen=True)
class Outcome:
    searched: tuple[str, ...]
    shown: Shown
    """The strips that the reader read."""
    answer: str


class Graded(Course):
    def find(self, query: str, k: int) -> list[Passage]:
        """Passages of some sentences."""
        return [replace(one, text=f"{one.text} It lies by {one.title}. {self._more(one)}") for one in super().find(query, k)]

    def _more(self, passage: Passage) -> str:
        draw = self.draw("more", passage.text)
        facts = [self.fact(draw) for _ in range(draw.randint(0, 3))]
        return " ".join(fact for fact in facts if len(fact.split()) > 3)  # declared: short strips

    def grade(self, text: str) -> float:
        high = self.draw("grades").choice([0.05, 0.4, 1.0])
        return self.draw("grade", text).uniform(0.01, high * 0.99)

    def answer(self, shown: Shown) -> str:
        return self.draw("answer", sorted(shown)).choice(ANSWERS)


def ours(seed: int) -> Outcome:
    course, shown = Graded(seed), frozenset[str]()

    def reply(prompt: Prompt) -> str:
        nonlocal shown
        shown = _strips(prompt.passages)
        return course.answer(shown)

    def score(prompt: Prompt, said: str) -> float:
        assert prompt.task == USEFUL
        (passage,) = prompt.passages
        grade = course.grade(passage.text)
        return math.log(grade if "yes" in said.lower() else 1 - grade)

    method = made(*LABEL, model=Scripted(reply, scorer=score), retriever=Searcher(course))
    answer = asyncio.run(method(Question("q", QUESTION)))
    return Outcome(tuple(course.searched), shown, answer.text)


def _strips(passages: Sequence[Passage]) -> Shown:
    return frozenset(strip for passage in passages for strip in split_sentences(passage.text) if strip)


Verdict = Callable[[Sequence[float]], int]
Refine = Callable[[Graded, Sequence[str], int], Sequence[str]]


def course_of(seed: int, verdict: Verdict, refine: Refine) -> Outcome:
    """The course with the verdict (0: incorrect, 1: ambiguous, 2: correct) and refinement of one side."""
    course, values = Graded(seed), row(*LABEL).values
    found = course.find(QUESTION, values["k"])
    judged = verdict([course.grade(one.text) for one in found]) if found else 0  # declared: nothing found
    sources = [found] if judged else []
    if judged < 2:
        known = {one.id for one in found}
        others = course.find(keywords(QUESTION), values["k"] + len(known))
        sources.append([one for one in others if one.id not in known][: values["k"]])
    shown = frozenset(strip for source in sources for strip in refine(course, _in_order(source), values["strips"]))
    return Outcome(tuple(course.searched), shown, course.answer(shown))


def _in_order(passages: Sequence[Passage]) -> list[str]:
    return [strip for passage in passages for strip in split_sentences(passage.text) if strip]


def restated(seed: int) -> Outcome:
    values = row(*LABEL).values

    def verdict(grades: Sequence[float]) -> int:
        return int(max(grades) >= values["upper"]) + int(max(grades) >= values["lower"])

    return course_of(seed, verdict, lambda course, strips, most: sorted(strips, key=course.grade, reverse=True)[:most])


def theirs(flag: Any, select: Any, seed: int) -> Outcome:
    values = row(*LABEL).values

    def verdict(grades: Sequence[float]) -> int:
        (judged,) = flag(grades, len(grades), values["upper"], values["lower"])
        return int(judged)

    def refine(course: Graded, strips: Sequence[str], most: int) -> Sequence[str]:
        class Tensor:
            """What the grader reads, and its grade."""

            def __init__(self, text: str) -> None:
                self.text = text

            def to(self, _: object) -> Tensor:
                return self

            def cpu(self) -> float:
                return course.grade(self.text.partition(" [SEP] ")[2])

        class Grader:
            def to(self, _: object) -> Grader:
                return self

            def __call__(self, text: Tensor, attention_mask: object) -> dict[str, Tensor]:  # noqa: ARG002
                return {"logits": text}

        def tokenizer(text: str, **_: object) -> dict[str, Tensor]:
            return {"input_ids": Tensor(text), "attention_mask": Tensor(text)}

        _, places = select(list(strips), QUESTION, tokenizer, Grader(), "cpu", top_n=most)
        return [strips[int(place)] for place in places.split(", ")[:most]] if places else []

    return course_of(seed, verdict, refine)


def load() -> tuple[Any, Any]:
    class Nothing:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    torch = types.SimpleNamespace(no_grad=Nothing, cuda=types.SimpleNamespace(is_available=bool))
    flag = function("HuskyInSalt/CRAG", "scripts/CRAG_Inference.py", "process_flag", {})
    return flag, function("HuskyInSalt/CRAG", "scripts/utils.py", "select_relevants", {"torch": torch})


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_rules(cases: int) -> None:
    assert [seed for seed in range(cases) if ours(seed) != restated(seed)] == []


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_authors(cases: int) -> None:
    authors = load()
    assert [seed for seed in range(cases) if ours(seed) != theirs(*authors, seed)] == []


def test_the_cases_go_every_way() -> None:
    outcomes = [restated(seed) for seed in range(FAST)]
    assert {len(one.searched) for one in outcomes} == {1, 2}
    assert {len(one.shown) for one in outcomes} >= {0, 3, 5, 10}

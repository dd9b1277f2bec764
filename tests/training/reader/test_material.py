"""Prompts as a method makes them, kept; and what cannot be learnt from."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gnothi import methods
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.methods.steps.prompts import ANSWER, ANSWER_YES_NO, REASON, ask
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.training.reader.material import PROMPTS, Example, Material, prompt_of, require_prompts, target
from gnothi.types import Passage, Prompt, Question, Task
from tests.messages import refused

PASSAGES = [Passage("a", "The colour is blue.", "Colours"), Passage("b", "Paint is wet.")]
QUESTIONS = [
    Question(f"q{n}", f"Which colour {n}?", ("Blue",), ("red", "blue") if n % 2 else ()) for n in range(6)
]  # fmt: skip
CONFIG = {"dataset": "test"}


class Asks:
    """Fails for the questions of the names given; counts."""

    def __init__(self, task: Task = ANSWER, failing: tuple[str, ...] = ()) -> None:
        self.task, self.failing, self.calls = task, failing, 0

    async def prompt(self, question: Question) -> Prompt:
        self.calls += 1
        if question.id in self.failing:
            raise RuntimeError("no luck")
        return ask(self.task, question, PASSAGES)


def made(out: Path, method: Asks, max_failures: int | None = None) -> list[Example]:
    with Material(out, QUESTIONS, CONFIG) as material:
        asyncio.run(material.collect(partial(prompt_of, method=method), 2, max_failures))
        return material.finish()


def test_the_prompts_of_a_method_with_the_answers(tmp_path: Path) -> None:
    method = methods.create(
        "rag", {"model": Scripted(lambda _: ""), "retriever": ScriptedRetriever(PASSAGES)}, {"reason": False}
    )
    with Material(tmp_path, QUESTIONS, CONFIG) as material:
        asyncio.run(material.collect(partial(prompt_of, method=method)))  # type: ignore[arg-type]
        found = material.finish()
    assert [example.prompt for example in found] == [ask(ANSWER, question, PASSAGES) for question in QUESTIONS]
    assert [example.target for example in found] == ["Blue", "blue"] * 3
    assert made(tmp_path, Asks(failing=("q1",))) == found  # nothing is asked again


def test_another_task_is_kept_whole(tmp_path: Path) -> None:
    found = made(tmp_path, Asks(ANSWER_YES_NO))
    assert {example.prompt.task for example in found} == {ANSWER_YES_NO}
    assert made(tmp_path, Asks()) == found


def test_chains_of_thought_cannot_be_learnt_from_answers(tmp_path: Path) -> None:
    assert made(tmp_path, Asks(REASON)) == []
    errors = [json.loads(line)["error"] for line in (tmp_path / PROMPTS).read_text().splitlines()]
    assert all("reason=False" in error["message"] for error in errors)


def test_what_is_refused(tmp_path: Path) -> None:
    for question in (Question("q", "Who?"), Question("q", "Who?", ("Ann",), ("Bo", "Cy"))):
        with refused(InvalidInput):
            Material(tmp_path, [question], CONFIG)
    with refused(InvalidInput):
        Material(tmp_path, QUESTIONS[:1] * 2, CONFIG)
    with refused(InvalidSetting):
        require_prompts("seakr")
    with pytest.raises(UnknownName):
        require_prompts("ragg")
    require_prompts("direct")


def test_the_target_is_the_choice_as_it_is_written() -> None:
    question = Question("q", "Which?", ("B",), ("The Red.", "The Blue."))
    assert target(question) == "The Blue."
    assert target(replace(question, answers=("the blue",))) == "The Blue."

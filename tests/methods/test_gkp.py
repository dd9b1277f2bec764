"""What makes generated-knowledge prompting: one answer per statement, and the surest of them."""

from __future__ import annotations

import math

import pytest

from gnothi import methods
from gnothi.errors import MissingCapability
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where would a fox look for hens?", choices=("a harbour", "a coop"))
STATEMENTS = ("Foxes are red.", "Hens live in a coop.", "unknown", "Foxes are red.", "")
# P("a coop") by what is read.
COOP = {"": 0.45, "Foxes are red.": 0.4, "Hens live in a coop.": 0.9}


def script(prompt: Prompt) -> list[Reply]:
    if prompt.task.name == "describe":
        return [Reply(text) for text in STATEMENTS]
    read = prompt.passages[0].text if prompt.passages else ""
    return [Reply("In a coop" if "coop" in read else "In a harbour", (math.log(COOP[read]),))]


def score(prompt: Prompt, text: str) -> float:
    coop = COOP[prompt.passages[0].text if prompt.passages else ""]
    return math.log(coop if text == "a coop" else 1 - coop)


async def test_the_answer_that_is_surest_with_its_statement() -> None:
    model = Scripted(script, scorer=score)
    answer = await methods.create("gkp", {"model": model}, {"statements": 5, "choice_score": "sum"})(QUESTION)
    assert answer.text == "a coop"
    assert answer.uncertainty == pytest.approx(0.1)
    assert [(one.id, one.text) for one in answer.evidence] == [("statement 2", "Hens live in a coop.")]
    read = [prompt.passages for prompt in model.prompts if prompt.task.name == "answer"]
    assert [[one.text for one in passages] for passages in read] == [[], ["Foxes are red."], ["Hens live in a coop."]]
    (wrote,) = {prompt.choices for prompt in model.prompts if prompt.task.name == "describe"}
    assert wrote == ()  # as in the authors' code
    assert {prompt.choices for prompt in model.prompts if prompt.task.name == "answer"} == {QUESTION.choices}


async def test_memory_wins_where_statements_only_confuse() -> None:
    model = Scripted(
        script, scorer=lambda prompt, text: math.log((0.8 if text == "a coop" else 0.2) if not prompt.passages else 0.5)
    )
    answer = await methods.create("gkp", {"model": model}, {"choice_score": "sum"})(QUESTION)
    assert (answer.text, answer.evidence) == ("a coop", ())


async def test_open_questions_by_the_replys_perplexity() -> None:
    answer = await methods.create("gkp", {"model": Scripted(script)}, {})(Question("q", QUESTION.text))
    assert answer.text == "In a coop"
    assert answer.uncertainty == pytest.approx(1 / 0.9)


async def test_another_model_may_answer() -> None:
    writer = Scripted(script, capabilities=Capabilities())
    reader = Scripted(script, scorer=score)
    answer = await methods.create("gkp", {"model": writer, "reader": reader}, {})(QUESTION)
    assert answer.text == "a coop"
    assert {prompt.task.name for prompt in writer.prompts} == {"describe"}
    with refused(MissingCapability):
        methods.create("gkp", {"model": reader, "reader": writer}, {})


async def test_an_answer_that_goes_round_is_cut_and_is_not_the_surest() -> None:
    def reply(prompt: Prompt) -> Reply | list[Reply]:
        if prompt.task.name == "describe":
            return [Reply("Hens live in a coop.")]
        return Reply("the coop, the coop, the coop, the coop", (-0.01,)) if prompt.passages else Reply("a barn", (-1.0,))

    answer = await methods.create("gkp", {"model": Scripted(reply)}, {})(Question("q", QUESTION.text))
    assert answer.text == "a barn"
    alone = await methods.create("gkp", {"model": Scripted(lambda _: "a coop, a coop, a coop")}, {})(
        Question("q", QUESTION.text)
    )
    assert (alone.text, alone.uncertainty) == ("a coop,", None)

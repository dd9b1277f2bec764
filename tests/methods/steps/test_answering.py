"""Choosing by likelihood, as every method does it that answers at once or after a chain of thought."""

from __future__ import annotations

import pytest

from gnothi import methods
from gnothi.errors import MissingCapability
from gnothi.methods.steps.parsing import read_reply
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Which colour?", choices=("red", "green", "blue"))
OPEN = Question("q", "Which colour?")
PASSAGES = [Passage("a", "The colour is blue."), Passage("b", "Paint is wet.")]


def scorer(_: Prompt, text: str) -> float:
    return {"red": -3.0, "green": -2.0, "blue": -1.0, "Yes": -1.0, "No": -2.0}[text]


def model(reply: str = "I would say purple") -> Scripted:
    return Scripted(lambda _: Reply(reply, (-1.0,)), scorer=scorer)


async def ask(name: str, asked: Scripted, question: Question = QUESTION, **settings: object) -> Answer:
    resources = {"model": asked, "retriever": ScriptedRetriever(PASSAGES)}
    return await methods.create(name, resources, {"choose": "likelihood", **settings})(question)


@pytest.mark.parametrize("name", ["direct", "cot", "rag", "skill_rag", "filco", "crag"])
async def test_a_choice_is_taken_whatever_the_model_would_write(name: str) -> None:
    assert (await ask(name, model())).text == "blue"
    assert (await ask(name, model("So the answer is purple."), OPEN)).text.endswith("purple")


async def test_a_short_answer_needs_no_generation() -> None:
    asked = model()
    answer = await ask("rag", asked, reason=False)
    assert [prompt.passages for prompt in asked.prompts] == [tuple(PASSAGES)]
    assert answer.evidence == tuple(PASSAGES)
    assert answer.uncertainty == pytest.approx(1 - 1 / (1 + 2.718281828**-1 + 2.718281828**-2))


async def test_a_reply_that_goes_round_in_circles_is_cut() -> None:
    assert (await ask("rag", model("British-Irish-Irish-Irish-Irish"), OPEN, reason=False)).text == "British-Irish"


async def test_a_named_signal_tells_the_uncertainty_all_the_same() -> None:
    asked = model()
    answer = await ask("direct", asked, signal="perplexity")
    assert (answer.text, len(asked.prompts)) == ("blue", 2)
    assert answer.uncertainty == pytest.approx(2.718281828)


async def test_without_one_the_uncertainty_is_that_of_the_choice() -> None:
    answer = await ask("cot", model("So the answer is purple."))
    assert answer.uncertainty == pytest.approx(1 - 1 / (1 + 2.718281828**-1 + 2.718281828**-2))


async def test_a_chain_is_written_and_the_choices_stand_where_it_names_its_answer() -> None:
    asked = model("It is the colour of the sky. So the answer is purple.")
    answer = await ask("cot", asked)
    assert asked.prompts[-1].answer_so_far == "It is the colour of the sky. So the answer is"
    assert answer.rationale == "It is the colour of the sky. So the answer is blue."
    unfinished = model("It is the colour of the sky.")
    await ask("cot", unfinished)
    assert unfinished.prompts[-1].answer_so_far == "It is the colour of the sky. So the answer is"


def test_before_answer() -> None:
    assert read_reply("A is B. So the answer is: C. More.").reasoning == "A is B. So the answer is"
    assert read_reply("A is B.").reasoning == "A is B. So the answer is"
    assert read_reply("").reasoning == "So the answer is"


async def test_it_needs_a_model_that_scores() -> None:
    text_only = Scripted(lambda _: "", capabilities=Capabilities(logprobs=True))
    with refused(MissingCapability):
        await ask("direct", text_only)
    with refused(MissingCapability):
        await ask("skill_rag", text_only)


@pytest.mark.parametrize("name", ["direct", "rag", "skill_rag", "filco", "crag"])
async def test_a_method_tells_what_it_would_ask(name: str) -> None:
    asked = model()
    method = methods.create(name, {"model": asked, "retriever": ScriptedRetriever(PASSAGES)}, {"choose": "likelihood"})
    prompt = await method.prompt(QUESTION)  # type: ignore[attr-defined]
    asked.prompts.clear()
    await method(QUESTION)
    assert prompt in asked.prompts

"""What is particular to direct, cot, rag and ircot; the rest is in the conformance suite."""

from __future__ import annotations

import pytest

from gnothi import events, methods
from gnothi.testing.conformance.method import PASSAGES, QUESTIONS, WordRetriever, reader
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question

A, B, C, D = (Passage(name, f"Text of {name}") for name in "abcd")
QUESTION = Question("q", "Where was the director of Velkarra born?")


async def ask(name: str, model: Scripted, retriever: object = None, **settings: object) -> Answer:
    method = methods.create(name, {"model": model, "retriever": retriever or ScriptedRetriever([A, B, C, D])}, settings)
    return await method(QUESTION)


@pytest.mark.parametrize("name", ["direct", "cot"])
async def test_closed_book_shows_no_passages_and_tells_perplexity(name: str) -> None:
    model = Scripted(lambda _: Reply("So the answer is Kestrel.", (-1.0,)))
    answer = await ask(name, model)
    assert answer.uncertainty == pytest.approx(2.718281828)
    assert all(prompt.passages == () for prompt in model.prompts)
    black_box = Scripted(lambda _: "So the answer is Kestrel.", capabilities=Capabilities())
    assert (await ask(name, black_box)).uncertainty is None


@pytest.mark.parametrize("name", ["direct", "cot", "rag"])
async def test_any_signal_may_tell_the_uncertainty_without_a_decision(name: str) -> None:
    with events.record() as recorded:
        answer = await ask(name, Scripted(lambda _: "So the answer is Kestrel."), signal="gram")
    assert answer.uncertainty is not None
    assert answer.uncertainty < -6
    assert not recorded


async def test_direct_asks_for_the_answer_alone() -> None:
    model = Scripted(lambda _: "Kestrel.\nIt is a town.")
    assert (await ask("direct", model)).text == "Kestrel"
    assert [prompt.task.name for prompt in model.prompts] == ["answer"]


async def test_cot_forces_a_conclusion() -> None:
    def reply(prompt: Prompt) -> str:
        return " Kestrel." if prompt.answer_so_far else "Mira was born in Kestrel."

    answer = await ask("cot", Scripted(reply))
    assert answer.text == "Kestrel"
    assert answer.rationale == "Mira was born in Kestrel. So the answer is Kestrel."


@pytest.mark.parametrize(("reason", "task"), [(True, "reason"), (False, "answer")])
async def test_rag_retrieves_once_with_the_question(reason: bool, task: str) -> None:
    model, retriever = Scripted(lambda _: "So the answer is Kestrel."), ScriptedRetriever([A, B, C, D])
    answer = await ask("rag", model, retriever, reason=reason)
    assert retriever.queries == [QUESTION.text]
    assert answer.evidence == (A, B, C)
    assert [(prompt.task.name, prompt.passages) for prompt in model.prompts] == [(task, (A, B, C))]


@pytest.mark.parametrize("name", ["cot", "ircot"])
async def test_a_chain_that_only_repeats_the_question_is_asked_for_a_short_answer(name: str) -> None:
    def reply(prompt: Prompt) -> str:
        return "Kestrel" if prompt.task.name == "answer" else f"{QUESTION.text[:4]} So the answer is {repeated}."

    repeated = QUESTION.text.split()[-2]
    model = Scripted(reply)
    answer = await ask(name, model, WordRetriever(PASSAGES))
    assert answer.text == "Kestrel"
    assert repeated in answer.rationale
    assert [prompt.task.name for prompt in model.prompts].count("answer") == 1


async def test_ircot_searches_with_the_question_and_then_with_each_sentence() -> None:
    model, retriever = Scripted(reader), WordRetriever()
    method = methods.create("ircot", {"model": model, "retriever": retriever}, {"k": 2})
    answer = await method(QUESTIONS[3])
    assert answer.text == "Kestrel3"
    assert retriever.queries == [
        QUESTIONS[3].text,
        "The film Velkarra3 was directed by Mira3 Tolven.",
        "Mira3 Tolven was born in Nowhere.",
    ]
    assert len(answer.evidence) == len({passage.id for passage in answer.evidence})
    last = model.prompts[-1]
    assert (last.passages, last.answer_so_far) == (answer.evidence, "")


async def test_ircot_stops_at_its_limits() -> None:
    numbers = iter(range(100))
    model = Scripted(lambda prompt: f"Fact {next(numbers)}. And" if not prompt.answer_so_far.endswith("is") else " Kestrel.")
    retriever = ScriptedRetriever({QUESTION.text: [A, B], "Fact 0.": [B, C], "Fact 1.": [D]})
    answer = await ask("ircot", model, retriever, k=2, max_steps=3, max_passages=3)
    assert answer.evidence == (A, B, C)
    assert retriever.queries == [QUESTION.text, "Fact 0."]  # full: no more searches
    assert answer.text == "Kestrel"

"""What makes SlimPLM: a small model tries first; its judgement gates, its claims are the queries, the large model answers."""

from __future__ import annotations

import math

import pytest

from gnothi import methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.steps.queries import least_likely_by_sentence
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Generation, Passage, Prompt, Question, Token
from tests.messages import refused

QUESTION = Question("q", "Where was the painter of The Tide born?")
SURE, UNSURE = "Mira painted The Tide.", "Mira was born in Vesk."
BORN, TIDE, OTHER = Passage("born", "Mira was born in Kestrel."), Passage("tide", "Mira painted it."), Passage("o", "Other.")


def proxy(knows: float) -> Scripted:
    numbers = (-0.01,) * 8 + (math.log(knows), math.log(knows), -0.01)
    return Scripted(
        lambda _: Reply(f"{SURE} {UNSURE} So the answer is Vesk.", numbers),
        name="slim",
        scorer=lambda _, reply: math.log(knows if reply == "Yes" else 1 - knows),
    )


def large() -> Scripted:
    def reply(prompt: Prompt) -> str:
        return f"So the answer is {'Kestrel' if BORN in prompt.passages else 'Ulm'}."

    return Scripted(reply, name="large", capabilities=Capabilities())


async def run(model: Scripted, slim: Scripted | None, **settings: object) -> tuple[Answer, list[str]]:
    retriever = ScriptedRetriever({QUESTION.text: [OTHER, TIDE], UNSURE: [BORN, OTHER], SURE: [TIDE]})
    resources = {"model": model, "retriever": retriever, "proxy": slim}
    return await methods.create("slimplm", resources, settings)(QUESTION), retriever.queries


async def test_what_the_proxy_knows_the_large_model_answers_from_memory() -> None:
    model = large()
    answer, queries = await run(model, proxy(0.9))
    assert (answer.text, queries) == ("Ulm", [])
    assert [prompt.passages for prompt in model.prompts] == [()]


async def test_unsure_claims_become_queries() -> None:
    model, slim = large(), proxy(0.1)
    answer, queries = await run(model, slim)
    assert queries == [QUESTION.text, UNSURE]
    assert answer.text == "Kestrel"
    assert answer.evidence == (OTHER, BORN, TIDE)  # in turns
    assert len(model.prompts) == 1


async def test_queries_by_setting() -> None:
    assert (await run(large(), proxy(0.1), claims=False))[1] == [QUESTION.text]
    assert (await run(large(), proxy(0.1), certainty=1.0))[1] == [QUESTION.text, SURE, UNSURE]
    assert (await run(large(), proxy(0.1), k=2))[0].evidence == (OTHER, BORN)


async def test_without_a_proxy_the_model_is_its_own_and_answers_once() -> None:
    model = proxy(0.9)
    answer, queries = await run(model, None)
    assert (answer.text, queries) == ("Vesk", [])
    assert [prompt.task.name for prompt in model.prompts] == ["reason"]


async def test_the_judgement_sees_the_heuristic_answer_unless_it_is_told_to_ask() -> None:
    """The same question: its answer decides, or what the proxy says of itself."""
    assert (await run(large(), proxy(0.9)))[1] == []
    assert (await run(large(), proxy(0.7)))[1] == [QUESTION.text, UNSURE]
    assert (await run(large(), proxy(0.7), judgement="self_report"))[1] == []
    model = proxy(0.9)
    await run(model, None, judgement="self_report")
    assert [prompt.task.name for prompt in model.prompts] == ["reason", "know"]


def test_what_is_refused() -> None:
    resources = {"model": proxy(0.5), "retriever": ScriptedRetriever([]), "proxy": large()}
    with refused(MissingCapability):
        methods.create("slimplm", resources, {})
    with refused(MissingCapability):
        methods.create("slimplm", resources | {"model": large(), "proxy": None}, {})
    with refused(InvalidSetting):
        methods.create("slimplm", resources | {"proxy": None}, {"judgement": "energy"})


def test_sentences_with_their_least_likely_token() -> None:
    words = ["It", " is", " so.", " J.", " R.", " came.", "\nAnd", " went"]
    draft = Generation("".join(words), tuple(Token(word, -float(number)) for number, word in enumerate(words)))
    found = least_likely_by_sentence(draft)
    assert [sentence for sentence, _ in found] == ["It is so.", "J. R. came.", "And went"]
    assert [-math.log(p) for _, p in found] == pytest.approx([2, 5, 7])
    assert least_likely_by_sentence(Generation("Black box.")) == [("Black box.", 0.0)]

"""Freely combined parts: the same answers as the methods they come from; what does not fit is said before any question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product
from typing import Any, get_args, get_type_hints

import pytest

from gnothi import events, lab, methods
from gnothi.cli.resources import open_resources
from gnothi.config import Settings
from gnothi.errors import InvalidSetting, MissingCapability, UnknownName
from gnothi.methods.compose import Compose
from gnothi.models.fake import Reply, Scripted
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.fake import FakeReranker, ScriptedRetriever
from gnothi.seeding import question_scope
from gnothi.signals import registry as signals
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.conformance.method import QUESTIONS, WordRetriever, reader
from tests.signals.probes import probe_saying

SIMPLE = {"gate": "gram", "signal": "gram", "query": "draft", "k": 3, "filter": "uncertainty"}
SAME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rag", {"k": 5}, {}),
    ("rag", {"reason": False}, {"k": 3, "reason": False}),
    ("cot", {}, {"gate": "never"}),
    ("direct", {}, {"gate": "never", "reason": False}),
    ("skill_rag", {}, {"filter": "pmi"}),
    ("skill_rag", {"task": "useful", "threshold": -1.0}, {"filter": "log_odds", "filter_threshold": -1.0}),
    ("skill_rag", {"gate": "self_report"}, {"gate": "self_report", "filter": "pmi"}),
    ("filco", {}, {"filter": "strinc"}),
    ("filco", {"measure": "lexical", "spans": None}, {"filter": "lexical", "keep": 0}),
    ("filco", {"measure": "cxmi", "spans": 2}, {"filter": "cxmi", "keep": 2}),
    ("seakr", {"form": "simple"}, {**SIMPLE, "answer": "surer"}),
    ("seakr", {"form": "simple", "strategy": "knowledge"}, SIMPLE),
    (
        "seakr",
        {"form": "simple", "signal": "perplexity"},
        {**SIMPLE, "gate": "perplexity", "signal": "perplexity", "answer": "surer"},
    ),
]


async def outcomes(method: Any, questions: Sequence[Question]) -> list[tuple[object, ...]]:
    async def one(question: Question) -> tuple[object, ...]:
        with question_scope(0, question.id), events.record() as recorded:
            answer = await method(question)
        queries = tuple(event.query for event in recorded if isinstance(event, events.Searched))
        score = None if answer.uncertainty is None else f"{answer.uncertainty:.4g}"  # batches differ in the last digits
        return answer.text, answer.rationale, answer.evidence, score, queries

    return await asyncio.gather(*(one(question) for question in questions))


async def both(
    name: str,
    settings: dict[str, Any],
    parts: dict[str, Any],
    model: LanguageModel,
    retriever: Retriever,
    questions: Sequence[Question],
) -> None:
    resources = {"model": model, "retriever": retriever}
    theirs = await outcomes(methods.create(name, resources, settings), questions)
    assert await outcomes(methods.create("compose", resources, parts), questions) == theirs


@pytest.mark.parametrize(("name", "settings", "parts"), SAME)
async def test_parts_give_the_methods_they_come_from(name: str, settings: dict[str, Any], parts: dict[str, Any]) -> None:
    await both(name, settings, parts, Scripted(reader), WordRetriever(), QUESTIONS)


@pytest.mark.parametrize(("name", "settings", "parts"), [SAME[0], SAME[4], SAME[7]])
async def test_on_the_laboratory(name: str, settings: dict[str, Any], parts: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    async with open_resources("lab", None, Settings(), ["rag"]) as opened:
        assert opened.retriever is not None
        await both(name, settings, parts, opened.model, opened.retriever, lab.questions(lab.world(), n=6))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "parts"), SAME)
async def test_on_many_questions_of_the_laboratory(name: str, settings: dict[str, Any], parts: dict[str, Any]) -> None:
    async with open_resources("lab", None, Settings(), ["rag"]) as opened:
        assert opened.retriever is not None
        await both(name, settings, parts, opened.model, opened.retriever, lab.questions(lab.world(), n=60))


# --- what only the combination has -----------------------------------------------------------------------------------

A, B = Passage("a", "Mira was born in Corda. It rains.", "Mira"), Passage("b", "Kestrel is a town.", "Kestrel")
QUESTION = Question("q", "Where was the painter Mira born?", ("Corda",))


def script(prompt: Prompt) -> Reply:
    if prompt.task.name == "useful":
        return Reply("Yes" if "Corda" in prompt.passages[0].text else "No")
    if prompt.task.name == "answer":
        return Reply("Corda" if prompt.passages else "Nowhere")
    return Reply(
        "So the answer is Corda." if prompt.passages else "So the answer is Nowhere.", doubt=0.0 if prompt.passages else 1.0
    )


async def ask(retriever: ScriptedRetriever | None = None, **settings: object) -> Answer:
    resources = {"model": Scripted(script), "retriever": retriever or ScriptedRetriever([A, B])}
    return await methods.create("compose", resources, settings)(QUESTION)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("question", QUESTION.text), ("keywords", "painter Mira born"), ("draft", "Nowhere")],
)
async def test_queries(query: str, expected: str) -> None:
    retriever = ScriptedRetriever([A, B])
    await ask(retriever, query=query)
    assert retriever.queries == [expected]


@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        ("none", ["a", "b"]),
        ("utility", ["a"]),
        ("rerank", ["a", "b"]),
        ("strinc", ["a"]),
        ("uncertainty", ["a"]),
    ],
)
async def test_filters(filter: str, kept: list[str]) -> None:
    assert [one.id for one in (await ask(filter=filter)).evidence] == kept


async def test_a_reranker_decides_the_order_and_how_many() -> None:
    by_length = FakeReranker(lambda _, text: -len(text))
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([A, B]), "reranker": by_length}
    answer = await methods.create("compose", resources, {"filter": "rerank", "keep": 1})(QUESTION)
    assert [one.id for one in answer.evidence] == ["b"]


async def test_reflection_is_searched_with() -> None:
    retriever = ScriptedRetriever([A, B])
    model = Scripted(lambda prompt: Reply("Mira is a painter.") if prompt.task.name == "describe" else script(prompt))
    await methods.create("compose", {"model": model, "retriever": retriever}, {"query": "reflection"})(QUESTION)
    assert retriever.queries == [f"{QUESTION.text} Mira is a painter."]


def graded(prompt: Prompt, continuation: str) -> float:
    useful = "Corda" in prompt.passages[0].text
    return -0.1 if (continuation == "Yes") is useful else -3.0


async def test_relevance_grades_sentences_and_keeps_so_many() -> None:
    model = Scripted(script, scorer=graded)
    resources = {"model": model, "retriever": ScriptedRetriever([A, B])}
    answer = await methods.create("compose", resources, {"filter": "relevance"})(QUESTION)
    assert [one.text for one in answer.evidence] == ["Mira was born in Corda."]
    everything = {"filter": "relevance", "filter_threshold": 0.01, "keep": 2}
    answer = await methods.create("compose", resources, everything)(QUESTION)
    assert [one.text for one in answer.evidence] == ["Mira was born in Corda. It rains."]


async def test_another_signal_may_decide_than_the_one_that_compares() -> None:
    with events.record() as recorded:
        answer = await ask(gate="consistency", gate_threshold=-1.0, answer="surer", signal="perplexity")
    assert [event.signal for event in recorded if isinstance(event, events.Decided)] == ["consistency"]
    (ranked,) = (event for event in recorded if isinstance(event, events.Ranked))
    assert {label for label, _, _ in ranked.candidates} == {"memory", "passages"}
    assert answer.text in ("Corda", "Nowhere")


async def test_nothing_found_is_answered_from_memory() -> None:
    for settings in ({"answer": "surer"}, {"filter": "uncertainty"}, {"filter": "strinc"}, {"gate": "gram", "answer": "surer"}):
        answer = await ask(ScriptedRetriever([]), **settings)
        assert (answer.text, answer.evidence) == ("Nowhere", ())


async def test_a_judge_beside_the_model_judges() -> None:
    judge = Scripted(lambda prompt: Reply("Yes" if "town" in prompt.passages[0].text else "No"), name="judge")
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([A, B]), "judge": judge}
    answer = await methods.create("compose", resources, {"filter": "utility"})(QUESTION)
    assert [one.id for one in answer.evidence] == ["b"]


def test_every_part_goes_with_every_other() -> None:
    """Made before the first question, each of them, for a model that can do everything."""
    hints = get_type_hints(Compose)
    slots = {name: get_args(hints[name]) for name in ("gate", "query", "filter", "answer")}
    assert {name: len(values) for name, values in slots.items()} == {
        "gate": len(signals.names()) + 2,
        "query": 4,
        "filter": 10,
        "answer": 2,
    }
    for gate, query, filter, answer in product(*slots.values()):
        threshold = {"gate_threshold": -9.0} if gate == "energy" else {}
        settings = {"gate": gate, "query": query, "filter": filter, "answer": answer, **threshold}
        learnt = {"probe": probe_saying(0.9)} if gate in ("probe", "question") else {}
        methods.create("compose", {"model": Scripted(script), "retriever": ScriptedRetriever([]), **learnt}, settings)


@pytest.mark.parametrize("gate", ["probe", "question"])
async def test_a_gate_that_foresees_makes_no_draft_that_nobody_needs(gate: str) -> None:
    async def asked(chance: float, **settings: object) -> int:
        resources = {"model": Scripted(script), "retriever": ScriptedRetriever([A, B]), "probe": probe_saying(chance)}
        model = resources["model"]
        with events.record() as recorded:
            await methods.create("compose", resources, {"gate": gate, "reason": False, **settings})(QUESTION)
        assert [event.verdict for event in recorded if isinstance(event, events.Decided)] == [
            "retrieve" if chance > 0.5 else "trust"
        ]
        assert isinstance(model, Scripted)
        return sum(not prompt.passages for prompt in model.prompts) - (gate == "probe")

    assert await asked(0.9) == 0
    assert await asked(0.9, query="draft") == 1
    assert await asked(0.1) == 1


# --- before the first question ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"filter": "bert"}, r"filter.*'bert'.*one of none, uncertainty, utility, rerank, relevance, pmi, log_odds, strinc"),
        ({"gate": "none"}, r"gate.*'none'.*one of never, always, gram"),
        ({"query": "flare"}, r"query.*one of question, keywords, draft, reflection"),
        ({"gate": "energy"}, "energy.*no usual threshold"),
        ({"gate_threshold": 1.0}, "gate=always measures nothing"),
        ({"filter": "utility", "keep": 3}, "has no use for it; expected one of rerank, relevance, pmi"),
        ({"judge": Scripted(script), "filter": "strinc"}, "filter=strinc asks none; expected one of utility"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, object], said: str) -> None:
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([]), "judge": settings.get("judge")}
    plain = {key: value for key, value in settings.items() if key != "judge"}
    with pytest.raises(InvalidSetting, match=said):
        methods.create("compose", resources, plain)


def test_unknown_settings_list_the_valid_ones() -> None:
    with pytest.raises(UnknownName, match=r"filters.*Did you mean 'filter'"):
        methods.create("compose", {"model": Scripted(script), "retriever": ScriptedRetriever([])}, {"filters": "pmi"})


@pytest.mark.parametrize(
    ("settings", "lacking", "advice"),
    [
        ({"filter": "pmi"}, "needs scoring", "--set judge=MODEL"),
        ({"filter": "cxmi"}, "needs scoring", "another model"),
        ({"gate": "gram"}, "needs hidden_states", "--set gate=consistency"),
        ({"answer": "surer"}, "needs logprobs", "another model"),
        ({"signal": "gram"}, "needs hidden_states", "--set signal=consistency"),
    ],
)
def test_what_the_model_lacks_is_said_with_a_way_out(settings: dict[str, object], lacking: str, advice: str) -> None:
    text_only = Scripted(script, capabilities=Capabilities())
    resources = {"model": text_only, "retriever": ScriptedRetriever([])}
    with pytest.raises(MissingCapability, match=lacking) as raised:
        methods.create("compose", resources, settings)
    assert advice in str(raised.value)
    judge = Scripted(script, name="judge", capabilities=Capabilities())
    if settings == {"filter": "pmi"}:
        with pytest.raises(MissingCapability, match=r"'judge'.*another judge"):
            methods.create("compose", {**resources, "judge": judge}, settings)
        able = Scripted(script, name="judge", capabilities=Capabilities(scoring=True))
        methods.create("compose", {**resources, "judge": able}, settings)

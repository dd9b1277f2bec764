"""Freely combined parts: the same answers as the methods they come from; what does not fit is said before any question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, get_args, get_type_hints

import pytest

from gnothi import events, lab, methods
from gnothi.config import Settings
from gnothi.errors import InvalidSetting, MissingCapability, UnknownName
from gnothi.methods.compose import CERTAINTY, Compose, OtherGate
from gnothi.methods.steps.settings import Measuring
from gnothi.models.wrappers import Calibrated
from gnothi.protocols import LanguageModel, Retriever
from gnothi.seeding import question_scope
from gnothi.signals import registry as signals
from gnothi.testing.conformance.method import QUESTIONS, WordRetriever, reader
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import FakeReranker, ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.messages import refused
from tests.methods.learnt import Fixed
from tests.session.opening import open_resources
from tests.signals.probes import probe_saying

SIMPLE = {"gate": "gram", "signal": "gram", "query": "question", "k": 10, "filter": "uncertainty"}
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
    ("seakr", {"form": "simple", "strategy": "both"}, {**SIMPLE, "answer": "surer"}),
    ("seakr", {"form": "simple"}, SIMPLE),
    (
        "seakr",
        {"form": "simple", "signal": "perplexity", "strategy": "both"},
        {**SIMPLE, "gate": "perplexity", "signal": "perplexity", "answer": "surer"},
    ),
    ("slimplm", {}, {"gate": "least_likely", "query": "claims"}),
    ("slimplm", {"judgement": "perplexity"}, {"gate": "perplexity", "query": "claims"}),
    ("slimplm", {"judgement": "self_report", "certainty": 0.99}, {"gate": "self_report", "query": "claims", "certainty": 0.99}),
    ("slimplm", {"judgement": "least_likely", "claims": False, "k": 3}, {"gate": "least_likely", "k": 3}),
]


async def outcomes(method: Any, questions: Sequence[Question]) -> list[tuple[object, ...]]:
    async def one(question: Question) -> tuple[object, ...]:
        with question_scope(0, question.id), events.record() as recorded:
            answer = await method(question)
        queries = tuple(
            sorted(event.query for event in recorded if isinstance(event, events.Searched))
        )  # some at the same time
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


FAST = (SAME[0], SAME[4], SAME[7], SAME[13])


@pytest.mark.parametrize(
    ("name", "settings", "parts"), [one if one in FAST else pytest.param(*one, marks=pytest.mark.slow) for one in SAME]
)
async def test_on_the_laboratory(name: str, settings: dict[str, Any], parts: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    async with open_resources("lab", None, Settings(), ["rag"]) as opened:
        assert opened.retriever is not None
        await both(name, settings, parts, opened.model, opened.retriever, lab.questions(lab.world(), n=6))


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
    return await methods.create("compose", resources, {"focus": False} | settings)(QUESTION)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("question", QUESTION.text),
        ("keywords", "painter Mira born"),
        ("draft", "Nowhere"),
        ("masked", "So the answer is Nowhere."),
        ("questions", "So the answer is Nowhere."),
    ],
)
async def test_queries(query: str, expected: str) -> None:
    retriever = ScriptedRetriever([A, B])
    await ask(retriever, query=query)
    assert retriever.queries == [expected]


def unsure(prompt: Prompt) -> Reply:
    """It has improbable words in two of three sentences."""
    if prompt.task.name == "ask_for":
        span = prompt.question.split('"')[1]
        return Reply(f"What of {span}?")
    numbers = [-3.0 if word in ("Mira", "1902", "Vesk") else -0.5 if word == "old." else -0.01 for word in UNSURE.split()]
    return Reply(UNSURE, tuple(numbers))


UNSURE = "It was Mira who painted. She is old. In 1902 came Vesk . So the answer is Vesk"


@pytest.mark.parametrize("gate", ["always", "perplexity", "question"])
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"query": "masked"}, ["It was who painted. She is old. In came . So the answer is"]),
        ({"query": "masked", "certainty": 0.9}, ["It was who painted. She is In came . So the answer is"]),
        ({"query": "masked", "certainty": 1.0}, [QUESTION.text]),
        ({"query": "masked", "certainty": 0.0}, [UNSURE]),
        ({"query": "questions"}, ["What of Mira?", "What of 1902?", "What of Vesk?"]),
        ({"query": "questions", "certainty": 0.0}, [UNSURE + "."]),
        ({"query": "claims"}, [QUESTION.text, "It was Mira who painted.", "She is old.", "In 1902 came Vesk ."]),
        ({"query": "claims", "certainty": 0.2}, [QUESTION.text, "It was Mira who painted.", "In 1902 came Vesk ."]),
    ],
)
async def test_queries_of_an_unsure_answer_from_memory(gate: str, settings: dict[str, object], expected: list[str]) -> None:
    retriever, model = ScriptedRetriever([A, B]), Scripted(unsure)
    resources = {"model": model, "retriever": retriever}
    if gate == "question":
        resources["signal.probe"] = probe_saying(0.9)
    threshold = {"gate_threshold": 1.1} if gate == "perplexity" else {}
    await methods.create("compose", resources, {"gate": gate, **threshold, **settings})(QUESTION)
    assert retriever.queries == expected
    assert sum(prompt.task.name == "reason" and not prompt.passages for prompt in model.prompts) == 1


async def test_a_blank_answer_from_memory_searches_for_the_question() -> None:
    for query in CERTAINTY:
        retriever = ScriptedRetriever([A, B])
        model = Scripted(lambda prompt: "So the answer is Corda." if prompt.passages else "")
        await methods.create("compose", {"model": model, "retriever": retriever}, {"query": query})(QUESTION)
        assert retriever.queries == [QUESTION.text]


async def test_several_queries_share_the_places_in_turns() -> None:
    C, D = Passage("c", "Vesk."), Passage("d", "Old.")
    places = {QUESTION.text: [A, B], "It was Mira who painted.": [C, A], "In 1902 came Vesk .": [C, D]}
    retriever = ScriptedRetriever(places)
    settings = {"query": "claims", "certainty": 0.2, "k": 3, "focus": False}
    answer = await methods.create("compose", {"model": Scripted(unsure), "retriever": retriever}, settings)(QUESTION)
    assert answer.evidence == (A, C, B)


async def test_the_weakest_word_decides() -> None:
    async def searched(**settings: object) -> bool:
        retriever = ScriptedRetriever([A, B])
        resources = {"model": Scripted(unsure), "retriever": retriever}
        await methods.create("compose", resources, {"gate": "least_likely", **settings})(QUESTION)
        return bool(retriever.queries)

    assert await searched()
    assert await searched(gate_threshold=0.9)
    assert not await searched(gate_threshold=0.96)  # 1 - exp(-3)


@pytest.mark.parametrize(
    ("filter", "kept"),
    [("none", ["a", "b"]), ("utility", ["a"]), ("rerank", ["a", "b"]), ("strinc", ["a"]), ("uncertainty", ["a"])],
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
    for settings, kept in (
        ({"filter_threshold": 0.1}, "Mira was born in Corda."),
        ({"keep": 2}, "Mira was born in Corda. It rains."),
    ):
        answer = await methods.create("compose", resources, {"filter": "relevance", **settings})(QUESTION)
        assert [one.text for one in answer.evidence] == [kept]


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


@pytest.mark.parametrize("settings", [{}, {"gate": "perplexity", "gate_threshold": 0.5}])
async def test_nothing_found_is_not_read(settings: dict[str, object]) -> None:
    """There is nothing to compare the answer from memory with, and so it is asked for once."""
    model = Scripted(script)
    resources = {"model": model, "retriever": ScriptedRetriever([])}
    with events.record() as recorded:
        await methods.create("compose", resources, {"answer": "surer", **settings})(QUESTION)
    assert len(model.prompts) == 1
    assert not any(isinstance(event, events.Ranked) for event in recorded)


async def test_a_judge_beside_the_model_judges() -> None:
    judge = Scripted(lambda prompt: Reply("Yes" if "town" in prompt.passages[0].text else "No"), name="judge")
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([A, B]), "judge": judge}
    answer = await methods.create("compose", resources, {"filter": "utility"})(QUESTION)
    assert [one.id for one in answer.evidence] == ["b"]


def test_every_part_goes_with_every_other() -> None:
    """Made before the first question, each of them, for a model that can do everything."""
    assert {name: len(values) for name, values in SLOTS.items()} == {
        "gate": len(signals.names()) + 3,
        "query": 7,
        "filter": 10,
        "answer": 3,
    }
    for parts in product(*SLOTS.values()):
        given = {**dict(zip(SLOTS, parts, strict=True)), **beside(parts[0], parts[-1])}
        settings: dict[str, Any] = {key: one for key, one in given.items() if key != "signal.probe"}
        if "signal.probe" in given:
            settings["measuring"] = Measuring(probe=given["signal.probe"])
        if parts[0] != "never" or parts[1:] == ("question", "none", "read"):
            Compose(Scripted(script), ScriptedRetriever([]), **settings)
        else:
            with refused(InvalidSetting):
                Compose(Scripted(script), ScriptedRetriever([]), **settings)


async def test_every_part_works_with_every_other() -> None:
    """Each two of them, to an answer from what was found or from memory."""
    usual = {"gate": "always", "query": "question", "filter": "none", "answer": "read"}
    pairs = [
        usual | {one: part, other: another}
        for one, other in combinations(SLOTS, 2)
        for part, another in product(SLOTS[one], SLOTS[other])
    ]
    for parts in pairs:
        if parts["gate"] != "never" or parts == usual | {"gate": "never"}:
            needed = beside(parts["gate"], parts["answer"])
            resources = {"model": Scripted(script), "retriever": ScriptedRetriever([A, B]), **needed}
            settings = {key: value for key, value in needed.items() if key == "gate_threshold"}
            answer = await methods.create("compose", resources, {**parts, **settings, "signal.samples": 4})(QUESTION)
            assert answer.text in ("Corda", "Nowhere"), parts
            assert parts["answer"] != "read" or answer.text == "Corda" or not answer.evidence, parts


SLOTS: dict[str, tuple[str, ...]] = {
    "gate": (*get_args(OtherGate), *signals.names()),
    **{name: get_args(get_type_hints(Compose)[name]) for name in ("query", "filter", "answer")},
}


def beside(gate: str, answer: str = "read") -> dict[str, Any]:
    """What a gate, and a way of answering, need beside their names."""
    needed: dict[str, dict[str, Any]] = {
        "energy": {"gate_threshold": -9.0},
        "entity_frequency": {"gate_threshold": -9.0},
        "probe": {"signal.probe": probe_saying(0.9)},
        "question": {"signal.probe": probe_saying(0.9)},
    }
    learned = {"learned": Fixed({"draft": 0.5, "reading": -0.5})} if "learned" in (gate, answer) else {}
    return needed.get(gate, {}) | learned


@pytest.mark.parametrize("gate", ["probe", "question"])
async def test_a_gate_that_foresees_makes_no_draft_that_nobody_needs(gate: str) -> None:
    async def asked(chance: float, **settings: object) -> int:
        model = Scripted(script)
        resources = {"model": model, "retriever": ScriptedRetriever([A, B]), "signal.probe": probe_saying(chance)}
        with events.record() as recorded:
            await methods.create("compose", resources, {"gate": gate, "reason": False, **settings})(QUESTION)
        assert [event.verdict for event in recorded if isinstance(event, events.Decided)] == [
            "retrieve" if chance > 0.5 else "trust"
        ]
        return sum(not prompt.passages for prompt in model.prompts) - (gate == "probe")

    assert await asked(0.9) == 0
    assert await asked(0.9, query="draft") == 1
    assert await asked(0.9, answer="surer") == 1  # with the signal that the other answer is compared by
    assert await asked(0.1) == 1


async def test_a_gate_that_foresees_makes_the_draft_that_the_other_answer_is_compared_with() -> None:
    """With one signal for both, what the gate measured is the answer from memory: without a draft it would be blank."""

    def unsure_of_both(prompt: Prompt) -> Reply:
        return Reply("No") if prompt.task.name == "know" else script(prompt)

    resources = {"model": Scripted(unsure_of_both), "retriever": ScriptedRetriever([A, B])}
    parts = {"gate": "prompt", "signal": "prompt", "answer": "surer"}
    with events.record() as recorded:
        answer = await methods.create("compose", resources, parts)(QUESTION)
    assert [event.verdict for event in recorded if isinstance(event, events.Decided)] == ["retrieve"]
    assert answer.text == "Nowhere"  # as unsure as the other one, and the first


# --- before the first question ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"filter": "bert"},
        {"gate": "none"},
        {"query": "flare"},
        {"gate": "energy"},
        {"gate_threshold": 1.0},
        {"gate": "never", "gate_threshold": 1.0},
        {"gate": "never", "query": "draft"},
        {"gate": "never", "filter": "pmi"},
        {"gate": "never", "answer": "surer"},
        {"gate": "never", "k": 3},
        {"certainty": 0.5},
        {"language": "de"},
        {"query": "claims", "reason": False},
        {"filter": "utility", "keep": 3},
        {"judge": Scripted(script), "filter": "strinc"},
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, object]) -> None:
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([]), "judge": settings.get("judge")}
    plain = {key: value for key, value in settings.items() if key != "judge"}
    with refused(InvalidSetting):
        methods.create("compose", resources, plain)


def test_what_a_gate_has_no_use_for_is_refused_with_the_gate_that_has() -> None:
    resources = {"model": Scripted(script), "retriever": ScriptedRetriever([]), "learned": Fixed({})}
    with refused(InvalidSetting):
        methods.create("compose", resources, {"gate": "gram"})


def test_questions_need_a_model_that_follows_an_instruction() -> None:
    taught = Calibrated(Scripted(script), {}, frozenset({"reason", "answer"}))
    with refused(MissingCapability):
        methods.create("compose", {"model": taught, "retriever": ScriptedRetriever([])}, {"query": "questions"})


def test_unknown_settings_list_the_valid_ones() -> None:
    with refused(UnknownName):
        methods.create("compose", {"model": Scripted(script), "retriever": ScriptedRetriever([])}, {"filters": "pmi"})


@pytest.mark.parametrize(
    "settings",
    [
        {"filter": "pmi"},
        {"filter": "cxmi"},
        {"gate": "gram"},
        {"answer": "surer"},
        {"query": "masked"},
        {"gate": "least_likely"},
        {"signal": "gram"},
    ],
)
def test_what_the_model_lacks_is_said_with_a_way_out(settings: dict[str, object]) -> None:
    text_only = Scripted(script, capabilities=Capabilities())
    resources = {"model": text_only, "retriever": ScriptedRetriever([])}
    with refused(MissingCapability):
        methods.create("compose", resources, settings)
    judge = Scripted(script, name="judge", capabilities=Capabilities())
    if settings == {"filter": "pmi"}:
        with refused(MissingCapability):
            methods.create("compose", {**resources, "judge": judge}, settings)
        able = Scripted(script, name="judge", capabilities=Capabilities(scoring=True))
        methods.create("compose", {**resources, "judge": able}, settings)

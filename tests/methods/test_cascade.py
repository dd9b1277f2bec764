"""What makes the learnt cascade: it stops where going on is not worth it, and chooses between two answers at the end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.steps.stages import _likelihoods
from gnothi.protocols import Method
from gnothi.testing.conformance.method import MethodConformance
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.messages import refused
from tests.methods.learnt import Fixed

TEXT_ONLY = Capabilities()
QUESTION = Question("q", "Where was Mira born?")
FOUND = [Passage("a", "Mira was born in Corda.", "Mira"), Passage("b", "Mira was born in Vesk.", "Mira")]


def reply(prompt: Prompt) -> str:
    return f"So the answer is {'Corda' if prompt.passages else 'Vesk'}."


def made(gate: Fixed | None, **settings: object) -> tuple[Method, ScriptedRetriever]:
    retriever = ScriptedRetriever(FOUND)
    resources: dict[str, object] = {"model": Scripted(reply), "retriever": retriever}
    return methods.create("cascade", resources | ({"learned": gate} if gate else {}), settings), retriever


@pytest.mark.parametrize(
    ("gains", "text", "searches", "decided"),
    [
        ({"question": -0.5}, "Vesk", 0, ["retrieve trust"]),
        ({"draft": 0.05}, "Vesk", 0, ["retrieve trust"]),
        ({"draft": 0.5, "search": 0.0}, "Vesk", 1, ["retrieve retrieve", "read trust"]),
        ({"draft": 0.5, "reading": 0.5}, "Corda", 1, ["retrieve retrieve", "choose evidence"]),
        ({"question": 0.2, "search": 0.5, "reading": -0.5}, "Vesk", 1, ["retrieve retrieve", "read read", "choose memory"]),
        ({}, "Corda", 1, []),
    ],
)
@pytest.mark.parametrize("read_by", ["auto", "once", "steps"])
async def test_how_far_it_goes(gains: dict[str, float], text: str, searches: int, decided: list[str], read_by: str) -> None:
    method, retriever = made(Fixed(gains), read_by=read_by)
    with events.record() as recorded:
        answer = await method(QUESTION)
    assert (answer.text, len(retriever.queries)) == (text, searches)
    assert bool(answer.evidence) == (text == "Corda")
    found = [event for event in recorded if isinstance(event, events.Decided)]
    assert [f"{one.kind} {one.verdict}" for one in found] == decided
    assert [(one.score, one.threshold, one.signal) for one in found] == [
        (gain, 0.1, "learned") for stage, gain in gains.items() if gain is not None
    ]
    assert not [event for event in recorded if isinstance(event, events.Gauged)]


@pytest.mark.parametrize(
    ("read_by", "question", "steps"),
    [
        ("auto", "Where was Mira born?", False),
        ("auto", "Where was the director of the film Corda born?", True),
        ("steps", "Where was Mira born?", True),
        ("once", "Where was Mira born?", False),
    ],
)
async def test_passages_are_read_in_steps_where_one_fact_does_not_seem_enough(read_by: str, question: str, steps: bool) -> None:
    model = Scripted(reply)
    resources = {"model": model, "retriever": ScriptedRetriever(FOUND)}
    await methods.create("cascade", resources, {"read_by": read_by})(Question("q", question))
    assert ("reason" in {prompt.task.name for prompt in model.prompts if prompt.passages}) is steps


@pytest.mark.parametrize(
    ("check", "text", "decided"),
    [(0.1, "Corda", ["look trust", "choose evidence"]), (0.3, "Vesk", ["look checking", "choose memory"])],
)
async def test_passages_are_read_alone_where_that_is_worth_it(check: float, text: str, decided: list[str]) -> None:
    gate = Fixed({"reading": 0.5, "checking": -0.5}, looks={"reading": ("checking", check)})
    with events.record() as recorded:
        assert (await made(gate, read_by="once")[0](QUESTION)).text == text
    found = [event for event in recorded if isinstance(event, events.Decided)]
    assert [f"{one.kind} {one.verdict}" for one in found] == decided
    assert (found[0].score, found[0].threshold) == (check, 0.2)
    assert ("checking" in gate.known) == (check > 0.2)


@pytest.mark.parametrize(("right", "text"), [((0.6, 0.9), "Corda"), ((0.9, 0.6), "unknown")])
async def test_an_answer_that_is_too_doubtful_is_not_given(right: tuple[float, float], text: str) -> None:
    method, _ = made(Fixed({"reading": 0.5}, right, sure_enough=0.8))
    answer = await method(QUESTION)
    assert answer.text == text
    assert answer.uncertainty == pytest.approx(1 - right[1])


async def test_what_is_known_grows_from_stage_to_stage() -> None:
    gate = Fixed({})
    await made(gate)[0](QUESTION)
    stages = [gate.known[stage] for stage in ("question", "draft", "search", "reading")]
    assert all(one < other for one, other in pairwise(stages))
    assert "memory doubt" in stages[1] - stages[0]
    assert "titles that stand twice" in stages[2] - stages[1]
    assert {"answers are the same", "evidence doubt", "passages read"} <= stages[3] - stages[2]


async def test_without_a_gate_everything_is_recorded_and_nothing_decided() -> None:
    gate = Fixed({})
    await made(gate)[0](QUESTION)
    with events.record() as recorded:
        answer = await made(None)[0](QUESTION)
    assert answer.text == "Corda"
    gauges = {one.signal: one for event in recorded if isinstance(event, events.Gauged) for one in event.gauges}
    assert {name.split(": ", 1)[1] for name in gauges if not name.startswith("checking")} == gate.known["reading"]
    assert gauges["reading: answers are the same"].score == 0
    assert gauges["search: passages hold memory's answer"].score == 0.5
    checked = {name.split(": ", 1)[1]: one.score for name, one in gauges.items() if name.startswith("checking")}
    assert checked["passages alone say evidence's answer"] == checked["passages alone: the largest vote"] == 1
    assert checked["passages alone say memory's answer"] == checked["passages alone say nothing"] == 0
    assert checked["passages alone: different answers"] == 1
    assert checked["passages alone: contradict most of them"] == 0
    assert not [event for event in recorded if isinstance(event, events.Decided)]


async def test_nothing_found_is_nothing_read() -> None:
    resources = {"model": Scripted(reply), "retriever": ScriptedRetriever([])}
    assert (await methods.create("cascade", resources, {})(QUESTION)).text == "Vesk"


async def test_passages_that_say_different_things_contradict_unless_the_model_finds_them_the_same() -> None:
    def town(prompt: Prompt) -> str:
        if prompt.task.name == "equivalent":
            return "Yes" if set(prompt.choices) == {"Corda", "the town of Corda"} else "No"
        said = {"a": "Corda", "b": "Vesk", "c": "the town of Corda"}
        return f"So the answer is {said[prompt.passages[0].id] if prompt.passages else 'Vesk'}."

    found = [*FOUND, Passage("c", "Mira came from the town of Corda.", "Mira")]
    resources = {"model": Scripted(town, capabilities=TEXT_ONLY), "retriever": ScriptedRetriever(found)}
    with events.record() as recorded:
        await methods.create("cascade", resources, {"k": 3, "read_by": "once"})(QUESTION)
    gauges = {one.signal: one.score for event in recorded if isinstance(event, events.Gauged) for one in event.gauges}
    assert gauges["checking: passages alone: contradict most of them"] == pytest.approx(1 / 3)
    assert gauges["checking: passages alone: different answers"] == 3


async def test_how_likely_the_passages_make_each_answer() -> None:
    chances = {(False, "Vesk"): -1.0, (False, "Kestrel"): -4.0, (True, "Vesk"): -3.0, (True, "Kestrel"): -0.5}
    model = Scripted({}, scorer=lambda prompt, text: chances[bool(prompt.passages), text])
    found = await _likelihoods(model, Question("q", "Where?"), Answer("Vesk"), Answer("Kestrel"), (Passage("p", "Kestrel."),))
    assert list(found.values()) == [-2.0, 3.5, 2.5]


@pytest.mark.parametrize(("gain", "text", "searches"), [(0.3, "Corda", 1), (0.1, "Vesk", 0)])
async def test_samples_are_drawn_where_that_is_worth_it(gain: float, text: str, searches: int) -> None:
    gate = Fixed(
        {"draft": -0.5, "samples": 0.5, "reading": 0.5},
        looks={"draft": ("samples", gain)},
        measures={"samples": ("gram", "consistency")},
    )
    method, retriever = made(gate, read_by="once")
    with events.record() as recorded:
        answer = await method(QUESTION)
    assert (answer.text, len(retriever.queries)) == (text, searches)
    found = [f"{one.kind} {one.verdict}" for one in recorded if isinstance(one, events.Decided)]
    looked = "samples" if gain > 0.2 else "trust"
    assert found[:2] == [f"look {looked}", "retrieve retrieve" if gain > 0.2 else "retrieve trust"]
    assert ({"gram", "consistency"} <= gate.known.get("samples", set())) == (gain > 0.2)
    assert not {"ln_entropy", "probe"} & gate.known.get("samples", set())


async def test_everything_is_recorded_where_that_is_asked_for() -> None:
    with events.record() as recorded:
        await made(None, read_by="once", record="all")[0](QUESTION)
    gauges = [one for event in recorded if isinstance(event, events.Gauged) for one in event.gauges]
    stages = [one.signal.split(": ", 1) for one in gauges]
    assert list(dict.fromkeys(stage for stage, _ in stages)) == [
        "question", "draft", "samples", "search", "reading", "checking", "weighing",
    ]  # fmt: skip
    assert {"gram", "consistency", "ln_entropy", "self_report"} <= {name for stage, name in stages if stage == "samples"}
    assert {name for stage, name in stages if stage == "weighing"} == {
        "U with all passages", "U falls by reading all", "U with a passage, the least", "U with a passage, the most",
    }  # fmt: skip
    cheap = {one.signal for one in gauges if not one.signal.startswith(("samples", "weighing"))}
    with events.record() as again:
        await made(None, read_by="once")[0](QUESTION)
    assert {one.signal for event in again if isinstance(event, events.Gauged) for one in event.gauges} == cheap


def test_a_gate_that_looks_at_a_probe_needs_one() -> None:
    with refused(InvalidSetting):
        made(Fixed({}, measures={"probe": ("probe",)}))


def test_a_gate_that_looks_at_hidden_states_needs_a_model_that_shows_them() -> None:
    gate = Fixed({}, measures={"samples": ("gram",)})
    resources = {"model": Scripted(reply, capabilities=TEXT_ONLY), "retriever": ScriptedRetriever(FOUND), "learned": gate}
    with refused(MissingCapability):
        methods.create("cascade", resources, {})


class TestCascade(MethodConformance):
    name = "cascade"
    settings = {"k": 30}  # noqa: RUF012

"""What makes the learnt cascade: it stops where going on is not worth it, and chooses between two answers at the end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gnothi import events, methods
from gnothi.protocols import Method
from gnothi.testing.conformance.method import MethodConformance
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Capabilities, Passage, Prompt, Question
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
    assert {name.split(": ", 1)[1] for name in gauges} == gate.known["reading"]
    assert gauges["reading: answers are the same"].score == 0
    assert gauges["search: passages hold memory's answer"].score == 0.5


async def test_nothing_found_is_nothing_read() -> None:
    resources = {"model": Scripted(reply), "retriever": ScriptedRetriever([])}
    assert (await methods.create("cascade", resources, {})(QUESTION)).text == "Vesk"


class TestCascade(MethodConformance):
    name = "cascade"
    settings = {"k": 30}  # noqa: RUF012

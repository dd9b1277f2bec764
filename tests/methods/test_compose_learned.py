"""The learnt gate as parts of ``compose``: it decides as in ``cascade``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi import events, methods
from gnothi.calibration.learned import gate_of
from gnothi.calibration.learned_records import Prices
from gnothi.calibration.replay import Known, Replay
from gnothi.errors import InvalidSetting
from gnothi.filtering.learned import GateSource, LearnedGate, open_gate, write_gate
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Passage, Prompt, Question
from tests.messages import refused
from tests.methods.learnt import Fixed

QUESTIONS = [Question(f"q{n}", f"Where was {'the great ' * (n % 3)}Mira{n} born?", ("Vesk",)) for n in range(40)]
FOUND = [Passage("a", "Mira was born in Corda.", "Mira"), Passage("b", "Mira was born in Vesk.", "Mira")]


def script(prompt: Prompt) -> Reply:
    """It knows two questions in three from memory, and is misled by what is found for one in four. Its doubt tells."""
    number = int(prompt.question.split("Mira")[1].split()[0])
    right = number % 4 > 0 if prompt.passages else number % 3 > 0
    text = "Vesk" if right else "Corda"
    return Reply(f"So the answer is {text}.", doubt=0.0 if right else 0.6)


async def answered(name: str, learned: GateSource | None, question: Question, **settings: Any) -> tuple[Answer, list[Any]]:
    resources: dict[str, object] = {"model": Scripted(script), "retriever": ScriptedRetriever(FOUND)}
    method = methods.create(name, resources | ({"learned": learned} if learned else {}), settings)
    with events.record() as recorded:
        return await method(question), recorded


def decided(recorded: list[Any]) -> list[events.Decided]:
    return [event for event in recorded if isinstance(event, events.Decided)]


def verdicts(recorded: list[Any]) -> list[str]:
    return [f"{one.signal} {one.kind} {one.verdict}" for one in decided(recorded)]


async def learnt(prices: Prices, folder: Path) -> LearnedGate:
    """Of a run of ``cascade`` without a gate over the questions, as ``gnothi calibrate --learn`` learns it."""
    never, always, rows = [], [], []
    for question in QUESTIONS:
        memory, _ = await answered("cot", None, question)
        evidence, recorded = await answered("cascade", None, question, read_by="once")
        never.append(float(memory.text in question.answers))
        always.append(float(evidence.text in question.answers))
        rows.append({gauge.signal: gauge.score for one in recorded if isinstance(one, events.Gauged) for gauge in one.gauges})
    known = [
        Known(name.split(": ", 1)[1], name.split(": ", 1)[0], np.array([row[name] for row in rows], dtype=np.float64))
        for name in rows[0]
    ]
    replay = Replay("run", "test", "em", ("cot", "cascade"), np.array(never), np.array(always), (), known=tuple(known))
    write_gate(folder, gate_of([replay], prices), {})
    return open_gate(folder)


@pytest.mark.parametrize("prices", [Prices(search=0.05), Prices(search=0.2, wrong=1.0)])
async def test_a_gate_learnt_of_cascade_decides_as_in_cascade(prices: Prices, tmp_path: Path) -> None:
    gate = await learnt(prices, tmp_path / "gate")
    first, texts = set(), set()
    for question in QUESTIONS[:12]:
        theirs, recorded = await answered("cascade", gate, question, read_by="once")
        both, same = await answered("compose", gate, question, gate="learned", answer="learned", k=2)
        assert (both, decided(same)) == (theirs, decided(recorded))
        _, alone = await answered("compose", gate, question, gate="learned", query="keywords", k=1)
        assert decided(alone) == decided(recorded)[:1]
        first.add(decided(alone)[0].verdict)
        texts.add(theirs.text)
    assert first == {"retrieve", "trust"}
    assert len(texts) >= 2


QUESTION = QUESTIONS[3]  # Corda from memory, Vesk by what is found


async def test_the_gate_alone_leaves_answers_as_they_are() -> None:
    unsure = Fixed({"draft": 0.05}, right=(0.1, 0.1), sure_enough=0.9)
    memory, recorded = await answered("compose", unsure, QUESTION, gate="learned")
    assert (memory.text, verdicts(recorded)) == ("Corda", ["learned retrieve trust"])
    assert memory == (await answered("compose", None, QUESTION, gate="never"))[0]
    searching = Fixed({"draft": 0.5, "reading": -0.5}, right=(0.1, 0.1), sure_enough=0.9)
    evidence, recorded = await answered("compose", searching, QUESTION, gate="learned")
    assert (evidence.text, verdicts(recorded)) == ("Vesk", ["learned retrieve retrieve"])
    assert evidence == (await answered("compose", None, QUESTION))[0]
    for gate, text in ((unsure, "unknown"), (searching, "unknown")):
        assert (await answered("compose", gate, QUESTION, gate="learned", answer="learned"))[0].text == text


@pytest.mark.parametrize(
    ("threshold", "verdict"), [(None, "retrieve"), (0.2, "retrieve"), (0.3, "trust"), (math.inf, "trust"), (-1.0, "retrieve")]
)
async def test_another_threshold_may_stand_for_the_price(threshold: float | None, verdict: str) -> None:
    gate = Fixed({"draft": 0.3})
    _, recorded = await answered("compose", gate, QUESTION, gate="learned", gate_threshold=threshold)
    (found,) = decided(recorded)
    assert (found.verdict, found.score, found.threshold) == (verdict, 0.3, 0.1 if threshold is None else threshold)


@pytest.mark.parametrize(
    ("gains", "text", "chosen"),
    [
        ({"draft": -0.5, "reading": 0.5}, "Vesk", ["choose evidence"]),
        ({"draft": -0.5, "reading": -0.5}, "Corda", ["choose memory"]),
        ({"draft": -0.5, "search": -0.5}, "Corda", ["read trust"]),
    ],
)
@pytest.mark.parametrize("gate", ["always", "perplexity", "consistency"])
async def test_another_gate_may_search(gate: str, gains: dict[str, float], text: str, chosen: list[str]) -> None:
    learned = Fixed(gains)
    settings: dict[str, Any] = {} if gate == "always" else {"gate_threshold": -1.0, "signal.samples": 2}
    answer, recorded = await answered("compose", learned, QUESTION, gate=gate, answer="learned", **settings)
    searched = [] if gate == "always" else [f"{gate} retrieve retrieve"]
    assert (answer.text, verdicts(recorded)) == (text, [*searched, *(f"learned {one}" for one in chosen)])
    assert "draft" not in learned.known  # it is not asked whether to search, but knows what was said from memory
    assert "memory doubt" in learned.known["search"]


async def test_a_draft_that_was_measured_is_not_made_again() -> None:
    for gate, drafts in (("learned", 1), ("perplexity", 1), ("least_likely", 2)):
        model = Scripted(script)
        resources = {"model": model, "retriever": ScriptedRetriever(FOUND), "learned": Fixed({"draft": 0.5, "reading": 0.5})}
        settings = {"gate": gate, "answer": "learned", "query": "draft", "reason": True}
        settings |= {} if gate == "learned" else {"gate_threshold": -1.0}
        await methods.create("compose", resources, settings)(QUESTION)
        assert sum(not prompt.passages for prompt in model.prompts) == drafts, gate


@pytest.mark.parametrize(
    ("gate", "settings"),
    [
        (None, {"gate": "learned"}),
        (None, {"answer": "learned"}),
        (Fixed({}), {"gate": "gram"}),
        (Fixed({"reading": 0.5}), {"gate": "learned"}),
        (Fixed({}), {"gate": "never", "answer": "learned"}),
    ],
)
def test_what_does_not_fit_is_refused(gate: GateSource | None, settings: dict[str, Any]) -> None:
    resources: dict[str, object] = {"model": Scripted(script), "retriever": ScriptedRetriever([])}
    with refused(InvalidSetting):
        methods.create("compose", resources | ({"learned": gate} if gate else {}), settings)

"""Signals that are functions of the question and the answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

import gnothi
from gnothi.errors import InvalidSetting
from gnothi.signals import registry
from gnothi.signals.base import Sampling
from gnothi.signals.kinds.consistency import disagreement
from gnothi.testing import Reply, Scripted
from gnothi.testing.conformance import SignalConformance
from gnothi.types import Decoding, Passage, Prompt, Task
from tests.messages import refused


@gnothi.signal(threshold=0.05, samples=False)
def hedged(question: str, answers: Sequence[str]) -> float | None:
    """Share of hedging words in the reply."""
    assert question
    words = answers[0].lower().replace(",", " ").replace(".", " ").split()
    return sum(word in ("perhaps", "maybe", "might") for word in words) / len(words) if words else None


@gnothi.signal
def dissent(_: str, answers: Sequence[str]) -> float:
    return disagreement(answers[1:])


class TestHedged(SignalConformance):
    signal = hedged


class TestDissent(SignalConformance):
    signal = dissent


def guesses(prompt: Prompt) -> Reply | list[Reply]:
    if prompt.passages or "sure" in prompt.question:
        return Reply("Ulm.", (-0.1,))
    return [Reply(f"Perhaps {n}.", (-1.0,), doubt=1.0) for n in range(9)]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test adds: the panel would measure it in those that follow."""
    before = registry.names()
    yield
    for name in set(registry.names()) - set(before):
        registry.SIGNALS.remove(name)


PROMPT = Prompt(Task("answer"), "Where?")


async def test_a_function_measures_what_a_signal_of_ours_does() -> None:
    for question in ("Where?", "Where, for sure?"):
        prompt = Prompt(Task("answer"), question)
        found = [
            await registry.create(name, Sampling(5)).measure(Scripted(guesses), prompt, Decoding())
            for name in ("consistency", registry.name_of(dissent))
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("samples", [True, False])
async def test_what_the_function_is_given(samples: bool) -> None:
    seen = []

    def seeing(question: str, answers: Sequence[str]) -> float:
        seen.append((question, list(answers)))
        return 0

    name = registry.name_of(gnothi.signal(samples=samples)(seeing))
    model = Scripted(guesses)
    await registry.create(name, Sampling(3)).measure(model, PROMPT, Decoding())
    ((question, answers),) = seen
    assert question == "Where?"
    assert len(answers) == (4 if samples else 1)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
async def test_what_cannot_be_measured_is_above_any_threshold(value: float | None) -> None:
    def unmeasured(question: str, answers: Sequence[str]) -> float | None:  # noqa: ARG001
        return value

    found = await registry.create(registry.name_of(unmeasured)).measure(Scripted(guesses), PROMPT, Decoding())
    assert found.uncertainty == math.inf
    assert found.score is None


@pytest.mark.parametrize("value", ["much", [1.0], object()])
async def test_what_is_no_number_is_told(value: Any) -> None:
    def wrong(question: str, answers: Sequence[str]) -> Any:  # noqa: ARG001
        return value

    with refused(InvalidSetting):
        await registry.create(registry.name_of(wrong)).measure(Scripted(guesses), PROMPT, Decoding())


async def waiting(question: str, answers: Sequence[str]) -> float:  # noqa: ARG001
    return 0.0


@pytest.mark.parametrize("function", [waiting, lambda answers: 0.0, lambda: 0.0, lambda a, b, c: 0.0])  # noqa: ARG005
def test_what_cannot_be_called_so_is_told(function: Any) -> None:
    with refused(InvalidSetting):
        gnothi.open("seakr", model=Scripted(guesses), index=lambda q, k: [], signal=function)  # noqa: ARG005


class Callable:
    __name__ = "callable_of_ours"

    def __call__(self, question: str, answers: Sequence[str]) -> float:
        return float(len(set(answers))) if question else 0.0


def plain(question: str, answers: Sequence[str]) -> float:
    return float(len(set(answers))) if question else 0.0


@pytest.mark.parametrize("signal", [plain, Callable(), partial(plain), gnothi.signal(plain)])
def test_it_stands_wherever_a_signal_is_named(signal: Any) -> None:
    passages = [Passage("p", "It is Ulm.")]
    more: dict[str, Any] = {"model": Scripted(guesses), "index": lambda q, k: passages}  # noqa: ARG005
    with gnothi.open("compose", gate=signal, gate_threshold=3, **more) as rag:
        (decision,) = (one for one in rag.ask("Where?").decisions if one.kind == "retrieve")
        assert (decision.verdict, decision.threshold) == ("retrieve", 3)
        assert rag.ask("Where, for sure?").decisions[0].verdict == "trust"


def test_the_panel_measures_it_beside_the_others(tmp_path: Any) -> None:
    registry.SIGNALS.add("hedged", hedged)
    asked = [gnothi.Question(f"{n}", f"Where {n}?", ("Ulm",)) for n in range(3)]
    run = gnothi.evaluate(asked, "panel", tmp_path, model=Scripted(guesses))
    assert all("hedged" in row.signals for row in run.rows)


def test_a_method_of_a_function_takes_it() -> None:
    @gnothi.method
    async def hedging_aware(steps: Any, question: Any, threshold: float = 0.1) -> Any:
        draft = await steps.draft(question, signal=hedged)
        return draft if draft.uncertainty <= threshold else "looked up"

    with gnothi.open(hedging_aware, model=Scripted(guesses), index=lambda q, k: []) as rag:  # noqa: ARG005
        assert rag.ask("Where?").text == "looked up"
        assert rag.ask("Where, for sure?").text == "Ulm"

"""Signals of others: named by text or given as objects, wherever a signal is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from gnothi import config, events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.compose import Compose
from gnothi.methods.seakr import SeaKR
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import ComputedSignal, Continued, Measured
from gnothi.signals.kinds.gram import Gram
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.testing import Reply, Scripted, ScriptedRetriever
from gnothi.types import Capabilities, Decoding, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was Mira Tolven born?")
PASSAGES = [Passage("p", "Mira Tolven was born in Kestrel.", "Mira Tolven")]


@dataclass(frozen=True)
class Length(ComputedSignal):
    """Long replies are uncertain."""

    scale: float = 1.0

    name: ClassVar[str] = "length"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True)
    default_threshold: ClassVar[float | None] = 6.0

    def compute(self, continued: Continued) -> float:
        return self.scale * len(continued.greedy.text.split())


class Plain:
    """No dataclass, and made without arguments."""

    name: ClassVar[str] = "plain"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = None

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(await model.generate(prompt, decoding), 0.25)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in ("length", "plain"):
        registry.SIGNALS.remove(name)


def resources(**beside: object) -> dict[str, Any]:
    def script(prompt: Prompt) -> Reply:
        return Reply("So the answer is Kestrel." if prompt.passages else "I guess that it may well be so: the answer is Ulm.")

    return {"model": Scripted(script, **beside), "retriever": ScriptedRetriever(PASSAGES)}  # type: ignore[arg-type]


WAYS: list[tuple[str, str, dict[str, object]]] = [
    ("seakr", "signal", {"form": "simple"}),
    ("compose", "gate", {}),
    ("skill_rag", "gate", {"threshold": -9.0}),
    ("slimplm", "judgement", {}),
    ("rag", "signal", {}),
]


@pytest.mark.parametrize(("method", "key", "settings"), WAYS)
@pytest.mark.parametrize("as_name", [False, True])
async def test_every_place_for_a_signal_takes_one_of_others(
    method: str, key: str, settings: dict[str, object], as_name: bool
) -> None:
    signal: object = Length()
    if as_name:
        signal = registry.SIGNALS.add("length", Length)
    with events.record() as happened:
        made = methods.create(method, resources(), {key: signal, **settings})
        answer = await made(QUESTION)
    assert answer.text == "Kestrel"
    assert config.resolved(made)[key] == "length"  # what a run records
    decided = [event for event in happened if isinstance(event, events.Decided) and event.signal == "length"]
    if method == "rag":
        assert answer.uncertainty == 5.0
    else:
        assert (decided[0].threshold, decided[0].verdict) == (6.0, "retrieve")


async def test_a_dataclass_that_is_made_by_hand_takes_the_object() -> None:
    made = resources()
    answer = await SeaKR(made["model"], made["retriever"], form="simple", signal=Length(0.1))(QUESTION)  # type: ignore[arg-type]
    assert answer.text == "Ulm"
    assert answer.uncertainty == pytest.approx(1.2)
    answer = await Compose(made["model"], made["retriever"], gate=Length(0.1))(QUESTION)  # type: ignore[arg-type]
    assert answer.text == "Ulm"
    with refused(InvalidSetting):
        SeaKR(made["model"], made["retriever"], signal=Plain())  # type: ignore[arg-type]


async def test_panel_measures_it_beside_the_others_where_the_model_can() -> None:
    for signal in (Length, Plain()):
        registry.SIGNALS.add(signal.name, signal)
    for capabilities, expected in ((Capabilities(logprobs=True), {"length", "plain"}), (Capabilities(), {"plain"})):
        with events.record() as happened:
            await methods.create("panel", resources(capabilities=capabilities), {})(QUESTION)
        (gauged,) = [event for event in happened if isinstance(event, events.Gauged)]
        scores = {gauge.signal: gauge.score for gauge in gauged.gauges}
        assert scores.keys() & {"length", "plain"} == expected
        assert scores["plain"] == 0.25
    assert registry.create("plain") is registry.find("plain")


def test_an_object_may_be_what_comes_along() -> None:
    for signal in (Perplexity(), Perplexity):
        assert registry.name_of(signal) == "perplexity"
    with refused(InvalidSetting):
        registry.name_of(Gram(alpha=2.0))


def test_what_is_no_signal_is_refused_with_what_would_do() -> None:
    with refused(InvalidSetting):
        methods.create("seakr", resources(), {"signal": object()})
    with refused(InvalidSetting):
        methods.create("seakr", resources(), {"signal": 5})
    several: list[Any] = [methods.create("rag", resources(), {"signal": Length(scale)}) for scale in (1.0, 2.0)]
    assert [one.make_signal(one.signal) for one in several] == [Length(1.0), Length(2.0)]
    with refused(MissingCapability):
        methods.create("rag", resources(capabilities=Capabilities()), {"signal": Length(1.0)})


def test_the_choices_of_a_setting_name_it() -> None:
    registry.SIGNALS.add("plain", Plain)
    for method, key in (("seakr", "signal"), ("compose", "gate")):
        assert "plain" in methods.spec(method).settings[key].type_name
    with refused(InvalidSetting):
        methods.create("compose", resources(), {"gate": "plan"})

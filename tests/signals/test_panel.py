"""Signals side by side: each is what it is alone, and what they share is asked for once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from gnothi import events
from gnothi.models.wrappers import Seeded, Traced
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import Measured, Sampling, Signal
from gnothi.signals.kinds.gram import Gram
from gnothi.signals.panel import Panel
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Decoding, Prompt, StateSpec, Task
from tests.signals.probes import probe_saying
from tests.signals.test_conformance import meeting

PROMPT = Prompt(Task("reason"), "Where was Mira Tolven born?")
DECODING = Decoding(max_tokens=20)
REPLIES = [Reply("In Kestrel", (-0.2, -0.4), doubt=0.5), Reply("In Ulm", (-1.0,), doubt=0.3), Reply("In kestrel.", (-0.1,))]


def model() -> LanguageModel:
    def script(prompt: Prompt) -> list[Reply]:
        return REPLIES if prompt.task.name == "reason" else [Reply("Yes, I know: Kestrel.")]

    return Traced(Seeded(Scripted(script)))


def all_signals(samples: int = 7) -> dict[str, Signal]:
    probe = probe_saying(0.8, 0.3)
    found = {name: registry.create(name, Sampling(samples), probe=probe, count=meeting) for name in registry.names()}
    elsewhere = StateSpec(2, "residual", "predicting")
    return {**found, "gram elsewhere": Gram(Sampling(samples), elsewhere), "gram of few": Gram(Sampling(3), elsewhere)}


async def test_each_signal_is_what_it_is_alone() -> None:
    signals = all_signals()
    together = await Panel(signals)(model(), PROMPT, DECODING)
    assert list(together) == list(signals)
    for name, signal in signals.items():
        alone = await signal.measure(model(), PROMPT, DECODING)
        assert together[name].uncertainty == pytest.approx(alone.uncertainty, rel=1e-9), name
        assert together[name].greedy == alone.greedy
    assert len({round(one.uncertainty, 6) for one in together.values()}) > 8


async def test_what_they_share_is_asked_for_once() -> None:
    with events.record() as seen:
        await Panel(all_signals())(model(), PROMPT, DECODING)
    calls = sorted((call.operation, call.task, len(call.texts)) for call in seen if isinstance(call, events.ModelCall))
    assert calls == [
        ("generate", "confidence", 1),
        ("generate", "know", 1),
        ("generate", "reason", 1),
        ("sample", "reason", 3),
        ("sample", "reason", 7),
        ("score", "equivalent", 6),
        ("score", "equivalent", 6),
        ("score", "know", 2),
        ("states", "reason", 0),  # the probe: the prompt's own
    ]
    (gauged,) = [event for event in seen if isinstance(event, events.Gauged)]
    assert gauged.text == "In Kestrel"
    cost = {gauge.signal: (gauge.model_calls, gauge.generated_tokens) for gauge in gauged.gauges}
    assert cost["perplexity"] == cost["energy"] == (0, 0)
    assert cost["gram"] == cost["gram elsewhere"] == cost["consistency"] == (1, 7 * 3)
    assert cost["gram of few"] == (1, 3 * 3)
    assert cost["self_report"] == (1, 0)
    assert (cost["probe"], cost["question"]) == ((1, 0), (0, 0))
    assert all(gauge.score is not None for gauge in gauged.gauges if gauge.signal != "verbalised")  # its reply is no number
    assert [event.tag for event in seen if not isinstance(event, events.ModelCall)] == ["gauged"]


@dataclass(frozen=True, slots=True)
class Odd:
    """A signal of neither kind."""

    name: ClassVar[str] = "odd"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = None

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(await model.generate(prompt, replace(decoding, max_tokens=1)), float("inf"))


async def test_a_signal_of_another_kind_measures_by_itself() -> None:
    with events.record() as seen:
        found = await Panel({"odd": Odd(), "perplexity": registry.create("perplexity")})(model(), PROMPT, DECODING)
    assert found["odd"] == Measured(found["perplexity"].greedy, float("inf"))
    (gauged,) = [event for event in seen if isinstance(event, events.Gauged)]
    assert gauged.as_dict()["gauges"][0] == {
        "signal": "odd",
        "score": None,
        "model_calls": 1,
        "prompt_tokens": 5,
        "generated_tokens": 1,
    }


async def test_no_signals_are_no_mistake() -> None:
    assert await Panel({})(model(), PROMPT, DECODING) == {}

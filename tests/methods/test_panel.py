"""What makes the panel: it answers as a method from memory, and each score is that of the signal by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from gnothi import events, methods
from gnothi.methods.panel import place_of
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.settings import CHAIN_STOPS
from gnothi.models.wrappers import Seeded, Traced
from gnothi.signals import registry
from gnothi.signals.base import Sampling
from gnothi.signals.kinds.gram import Gram
from gnothi.testing.model import EVERYTHING, Reply, Scripted
from gnothi.types import Answer, Capabilities, Decoding, Position, Prompt, Question, Site, StateSpec
from tests.signals.probes import probe_saying

QUESTION = Question("q", "Where was Mira Tolven born?", choices=())
SITES, POSITIONS = get_args(Site), get_args(Position)


def script(prompt: Prompt) -> list[Reply]:
    if prompt.task.name == "know":
        return [Reply("No, I don't know.")]
    chain = "Mira Tolven was born in {}. So the answer is {}." if prompt.task.name == "reason" else "{}"
    return [Reply(chain.format(town, town), (-0.3,), doubt=0.4) for town in ("Kestrel", "Ulm", "Kestrel")]


def measuring(**settings: Any) -> dict[str, Any]:
    return {f"signal.{key}": value for key, value in settings.items()}


ASKING = {"semantic_entropy", "verbalised"}


async def answered(
    name: str, capabilities: Capabilities = EVERYTHING, **settings: Any
) -> tuple[Answer, dict[str, float | None]]:
    model = Traced(Seeded(Scripted(script, capabilities=capabilities)))
    method = methods.create(name, {"model": model, "signal.probe": settings.pop("probe", None)}, settings)
    with events.record() as seen:
        answer = await method(QUESTION)
    found = [event for event in seen if isinstance(event, events.Gauged)]
    assert not any(isinstance(event, events.Decided) for event in seen)
    return answer, {gauge.signal: gauge.score for event in found for gauge in event.gauges}


@pytest.mark.parametrize(("reason", "other"), [(True, "cot"), (False, "direct")])
@pytest.mark.parametrize("signal", [None, "consistency"])
async def test_the_answer_is_that_of_a_method_from_memory(reason: bool, other: str, signal: str | None) -> None:
    answer, _ = await answered("panel", reason=reason, signal=signal, **measuring(samples=5))
    assert answer == (await answered(other, signal=signal, **measuring(samples=5)))[0]


async def test_every_signal_at_every_site() -> None:
    _, scores = await answered("panel", reason=True, **measuring(samples=6, layer=1))
    expected = [name for name in registry.within(EVERYTHING) if name not in ASKING]
    place = expected.index("gram") + 1
    assert list(scores) == [*expected[:place], "gram.residual", *expected[place:]]
    model = Traced(Seeded(Scripted(script)))
    for name, score in scores.items():
        if name.startswith("gram"):
            spec = StateSpec(1, "residual" if name == "gram.residual" else "ffn")
            measured = await Gram(Sampling(6), spec).measure(model, ask(REASON, QUESTION), Decoding(100, stop=CHAIN_STOPS))
            assert score == pytest.approx(measured.uncertainty), name


async def test_the_place_that_is_set_has_the_plain_name() -> None:
    _, scores = await answered("panel", **measuring(site="residual"))
    assert "gram.ffn" in scores
    assert "gram.residual" not in scores
    assert place_of("gram") == ("gram", {"form": "simple"})
    assert place_of("gram.ffn") == ("gram", {"form": "simple", "signal.site": "ffn"})


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        (Capabilities(), {"consistency", "prompt"}),
        (
            Capabilities(logprobs=True),
            {"consistency", "prompt", "perplexity", "least_likely", "multi_perplexity", "ln_entropy"},
        ),
        (Capabilities(scoring=True), {"consistency", "prompt", "self_report"}),
    ],
)
async def test_what_a_model_cannot_give_is_left_out(capabilities: Capabilities, names: set[str]) -> None:
    answer, scores = await answered("panel", capabilities)
    assert set(scores) == set(registry.within(capabilities)) - ASKING >= names
    assert not {"gram", "energy", "probe", "question"} & set(scores)
    assert answer.text == "Kestrel"
    assert (answer.uncertainty is None) == (not capabilities.logprobs)


async def test_what_was_learnt_takes_part_where_there_is_a_probe() -> None:
    wording_alone = replace(probe_saying(0.8, 0.3), states=())
    assert not {"probe", "question"} & set((await answered("panel"))[1])
    _, scores = await answered("panel", probe=probe_saying(0.8, 0.3))
    assert [scores["probe"], scores["question"]] == pytest.approx([0.8, 0.3])
    _, scores = await answered("panel", probe=wording_alone)
    assert "probe" not in scores
    assert scores["question"] == pytest.approx(0.3)
    _, scores = await answered("panel", Capabilities(), probe=probe_saying(0.8, 0.3))
    assert set(scores) == {"consistency", "prompt", "question"}


async def test_signals_that_ask_take_part_where_they_are_named() -> None:
    _, scores = await answered("panel")
    assert not ASKING & set(scores)
    _, scores = await answered("panel", signal="semantic_entropy")
    assert {"semantic_entropy", "perplexity"} <= set(scores)
    assert "verbalised" not in scores

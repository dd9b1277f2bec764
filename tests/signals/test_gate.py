from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.runs.rows import answered
from gnothi.signals import registry
from gnothi.signals.base import Measured
from gnothi.signals.gate import Gate, decisive
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Answer, Capabilities, Decoding, Prompt, Question, Task
from tests.signals.probes import probe_saying

PROMPT = Prompt(Task("reason"), "Where was Mira Tolven born?")
IGNORANT = Reply("So the answer is unknown.", (-0.01,))
SURE, UNSURE, BLANK = Reply("In Kestrel", (-0.01,)), Reply("In Kestrel", (-3.0,)), Reply("  ")


@pytest.mark.parametrize(
    ("reply", "threshold", "fires"),
    [
        (SURE, 1.5, False),
        (UNSURE, 1.5, True),
        (BLANK, 1.5, True),
        (BLANK, float("inf"), True),
        (IGNORANT, 1.5, True),
        (SURE, None, True),
        (UNSURE, 1e9, False),
    ],
)
async def test_fires_above_the_threshold_or_when_nothing_is_said(reply: Reply, threshold: float | None, fires: bool) -> None:
    gate = Gate(registry.create("perplexity"), threshold)
    with events.record() as recorded:
        verdict = await gate(Scripted(lambda _: reply), PROMPT, Decoding())
    assert verdict.fired is fires
    drafted, decided = recorded
    assert drafted == events.Drafted(reply.text.strip(), verdict.measured.score)
    assert isinstance(decided, events.Decided)
    assert (decided.kind, decided.signal, decided.threshold) == ("retrieve", "perplexity", threshold)
    assert decided.verdict == ("retrieve" if fires else "trust")
    assert decided.score == (None if reply is BLANK else pytest.approx(verdict.measured.uncertainty))


async def test_exactly_the_threshold_is_trusted() -> None:
    model = Scripted(lambda _: SURE)
    value = (await registry.create("perplexity").measure(model, PROMPT, Decoding())).uncertainty
    assert not (await Gate(registry.create("perplexity"), value)(model, PROMPT, Decoding())).fired


@dataclass(frozen=True)
class Always:
    uncertainty: float
    name: ClassVar[str] = "always"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = None

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(await model.generate(prompt, decoding), self.uncertainty)


def recorded_score(uncertainty: float) -> float:
    decided = events.Decided("retrieve", "always", uncertainty, None, "retrieve")
    return float(answered("seakr", Question("q", "?"), Answer(""), [decided], 0.0).decisions[0]["score"])


@given(tried=st.integers(1, 20), differing=st.integers(0, 20), at=st.floats(0, 1))
def test_what_is_recorded_is_what_decided(tried: int, differing: int, at: float) -> None:
    """1 - 7/10 is more than 0.3, and a threshold chosen from recorded scores is one of them."""
    uncertainty = 1.0 - min(differing, tried) / tried
    recorded = recorded_score(uncertainty)
    for threshold in (recorded, decisive(at)):
        assert asyncio.run(Gate(Always(uncertainty), threshold)(Scripted(lambda _: SURE), PROMPT, Decoding())).fired is (
            recorded > threshold
        )


@pytest.mark.parametrize(("chance", "threshold", "fires"), [(0.8, 0.5, True), (0.8, None, True), (0.2, 0.5, False)])
@pytest.mark.parametrize("draft", [True, False])
async def test_no_draft_where_none_is_needed(chance: float, threshold: float | None, fires: bool, draft: bool) -> None:
    gate = Gate(registry.create("question", probe=probe_saying(chance)), threshold, draft=draft)
    model = Scripted(lambda _: SURE)
    with events.record() as recorded:
        verdict = await gate(model, PROMPT, Decoding())
    assert verdict.fired is fires
    assert verdict.measured.uncertainty == pytest.approx(chance)
    drafted = draft or not fires
    assert verdict.measured.greedy.text == (SURE.text if drafted else "")
    assert len(model.prompts) == drafted
    *before, decided = recorded
    assert [type(one) for one in before] == [events.Drafted] * drafted
    assert isinstance(decided, events.Decided)
    assert decided.subject == (SURE.text if drafted else PROMPT.question)


async def test_a_draft_that_says_nothing_fires_though_foreseen_as_right() -> None:
    gate = Gate(registry.create("question", probe=probe_saying(0.2)), 0.5, draft=False)
    assert (await gate(Scripted(lambda _: IGNORANT), PROMPT, Decoding())).fired

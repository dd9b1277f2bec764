from __future__ import annotations

import pytest

from gnothi import events
from gnothi.models.fake import Reply, Scripted
from gnothi.signals import registry
from gnothi.signals.threshold import Gate
from gnothi.types import Decoding, Prompt, Task

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

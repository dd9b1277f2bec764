"""Which of several prompts is continued with the least uncertainty: all samples, or as few as set the least apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gnothi import events
from gnothi.models.wrappers import Seeded
from gnothi.signals import registry
from gnothi.signals.base import Measured, Sampling
from gnothi.signals.drawing import Comparison
from gnothi.signals.stopping import Lead, Stopping, groups
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Prompt, Samples, StateSpec, Task

TASK = Task("reason")
SURE, TORN, SILENT = (Prompt(TASK, question) for question in ("sure", "torn", "silent"))
SAID = {"sure": ["Kestrel"], "torn": ["Kestrel", "Ostmere", "Farrow", "Tolvenside"], "silent": ["unknown", "Farrow"]}


class Counting(Scripted):
    """How many samples were asked for of each prompt."""

    def __init__(self) -> None:
        super().__init__(lambda prompt: SAID[prompt.question])
        self.asked: list[tuple[str, int, int]] = []

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        self.asked.append((prompt.question, decoding.first, n))
        return await super().sample(prompt, n, decoding, hidden)


async def compared(
    model: Scripted, prompts: Sequence[Prompt], rule: Stopping | None, signal: str = "consistency"
) -> list[Measured]:
    compare = Comparison(registry.create(signal, Sampling(stopping=rule)))
    return await compare(Seeded(model), [(prompt, Decoding()) for prompt in prompts])


@pytest.mark.parametrize(
    ("prompts", "rule", "samples"),
    [
        ((SURE, TORN), Stopping(leads=(Lead(4, 0.75),)), 4),  # 0 and 0.75 of the samples disagree
        ((SURE, TORN), Stopping(leads=(Lead(4, 0.76), Lead(8, 0.7))), 8),
        ((TORN, TORN), Stopping(leads=(Lead(4, 0.1), Lead(8, 0.1))), 20),
        ((TORN, TORN), Stopping(leads=(Lead(4, 0.0),)), 4),
        ((SURE, SILENT), Stopping(leads=(Lead(4, 9.0),)), 4),  # what says nothing is out
        ((SILENT, SILENT), Stopping(leads=(Lead(4, 9.0),)), 4),
        ((TORN,), Stopping(leads=(Lead(4, 0.0),)), 20),  # compared with nothing
        ((TORN,), Stopping(alone=(8,)), 8),
        ((SURE, TORN), Stopping(alone=(8,)), 20),
    ],
)
async def test_all_are_drawn_on_until_the_least_is_apart(prompts: Sequence[Prompt], rule: Stopping, samples: int) -> None:
    model = Counting()
    with events.record() as seen:
        await compared(model, prompts, rule)
    drawn = [sum(n for question, _, n in model.asked if question == prompt.question) for prompt in set(prompts)]
    assert drawn == [samples * prompts.count(prompt) for prompt in set(prompts)]
    (decided,) = [event for event in seen if isinstance(event, events.Decided)]
    assert (decided.kind, decided.samples, decided.verdict) == ("compare", samples, f"least of {len(prompts)}")


@pytest.mark.parametrize("signal", ["gram", "ln_entropy", "consistency", "semantic_entropy", "multi_perplexity"])
async def test_without_a_lead_the_scores_are_those_of_all(signal: str) -> None:
    never = Stopping(leads=tuple(Lead(count, math.inf) for count in groups(20)[:-1]))
    with events.record() as seen:
        whole = await compared(Counting(), (SURE, TORN), None, signal)
    assert not [event for event in seen if isinstance(event, events.Decided)]
    assert await compared(Counting(), (SURE, TORN), never, signal) == whole


async def test_scores_of_fewer_lie_where_those_of_all_do() -> None:
    """U of equal samples depends on their number: few stand for as many as all."""
    (few,) = await compared(Counting(), (SURE,), Stopping(alone=(4,)), "gram")
    (whole,) = await compared(Counting(), (SURE,), None, "gram")
    assert few.uncertainty == pytest.approx(whole.uncertainty)


async def test_collecting_tells_both_draws_of_each_that_counts() -> None:
    with events.record() as seen:
        found = await compared(Counting(), (SURE, SILENT, TORN), Stopping(collecting=True))
    (decided,) = [event for event in seen if isinstance(event, events.Decided)]
    assert [len(draw) for draw in decided.draws] == [4] * 4
    assert [draw[-1] for draw in decided.draws] == [0.0, 0.0, 0.75, 0.75]
    assert found == [replace(one, draws=()) for one in await compared(Counting(), (SURE, SILENT, TORN), None)]

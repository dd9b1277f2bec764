"""Drawing until the side of the threshold is decided: the rule as text, and what a gate makes of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import events
from gnothi.errors import InvalidSetting
from gnothi.models.wrappers import Seeded
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import ContinuationSignal, Sampling
from gnothi.signals.gate import Gate, Verdict
from gnothi.signals.stopping import Lead, Step, Stopping, groups, parsed
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Decoding, Prompt, Samples, StateSpec, Task
from tests.messages import refused

PROMPT = Prompt(Task("reason"), "Where was Mira Tolven born?")
ALIKE, UNLIKE = ["Kestrel"], ["Kestrel", "Amber Harbour", "Tolvenside", "Ostmere", "Farrow"]
DRAWING = ("gram", "ln_entropy", "consistency", "semantic_entropy", "multi_perplexity")
NEVER = Stopping(tuple(Step(count, -math.inf, math.inf) for count in groups(20)[:-1]))
finite = st.floats(-100, 100)


@st.composite
def rules(draw: st.DrawFn) -> Stopping:
    rising = st.sets(st.integers(1, 30), max_size=4).map(sorted)
    margins = st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)).map(sorted)
    steps = tuple(Step(count, low, high, draw(finite)) for count in draw(rising) for low, high in [draw(margins)])
    leads = tuple(Lead(count, draw(st.floats(0))) for count in draw(rising))
    return Stopping(steps, leads, tuple(draw(rising)[:1]))


@settings(max_examples=settings().max_examples // 3)
@given(rules())
def test_a_rule_survives_as_text(rule: Stopping) -> None:
    assert parsed(str(rule) or None) == (rule if rule != Stopping() else None)
    assert parsed(str(Stopping(collecting=True))) == Stopping(collecting=True)
    assert parsed(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "4: 1 2",
        "four: 1 2 3",
        "4: 2 1 0",
        "8: 1 2 0, 4: 1 2 0",
        "0: 1 2 0",
        "4: 1 2 inf",
        "4: nan 2 0",
        "|",
        "| 4",
        "| 4: 1 2",
        "| 4: -1",
        "| 4: nan",
        "| 8: 0, 4: 0",
        "|| 4: 0",
        "|| 0",
        "|| 4, 8",
        "4: 1 2 0 | 4: 0 | 4 | 4",
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with refused(InvalidSetting):
        parsed(text)


@given(st.integers(1, 500))
def test_groups_rise_to_all_samples(samples: int) -> None:
    found = groups(samples)
    assert list(found) == sorted(set(found))
    assert (found[0] >= 1, found[-1]) == (True, samples)
    assert groups(20) == (4, 8, 12, 20)


def test_a_rule_for_more_samples_than_are_drawn_is_refused() -> None:
    with refused(InvalidSetting):
        Sampling(12, stopping=NEVER)


class Counting(Scripted):
    """How many samples were asked for, request by request."""

    def __init__(self, replies: list[str], doubt: float = 0.0) -> None:
        super().__init__(lambda prompt: [Reply(text, (-0.5,), doubt) for text in replies] if prompt == PROMPT else "Yes")
        self.asked: list[tuple[int, int]] = []

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        self.asked.append((decoding.first, n))
        return await super().sample(prompt, n, decoding, hidden)


async def verdict(model: LanguageModel, signal: str, threshold: float | None, rule: Stopping | None) -> Verdict:
    return await Gate(registry.create(signal, Sampling(stopping=rule)), threshold)(Seeded(model), PROMPT, Decoding())


@pytest.mark.parametrize("signal", DRAWING)
async def test_samples_of_groups_are_those_of_one_draw(signal: str) -> None:
    one, other = Counting(UNLIKE, 1.0), Counting(UNLIKE, 1.0)
    with events.record() as seen:
        in_groups = (await verdict(one, signal, 0.1, NEVER)).measured
    assert in_groups.samples == 20
    assert replace(in_groups, samples=None) == (await verdict(other, signal, 0.1, None)).measured
    assert (one.asked, other.asked) == ([(0, 4), (4, 4), (8, 4), (12, 8)], [(0, 20)])
    # What was asked about the first samples is not asked again (semantic_entropy).
    assert len(one.prompts) - len(one.asked) == len(other.prompts) - len(other.asked)
    (decided,) = [event for event in seen if isinstance(event, events.Decided)]
    assert (decided.samples, decided.draws) == (20, ())


@pytest.mark.parametrize(
    ("replies", "step", "fires", "samples"),
    [
        (ALIKE, Step(4, 0.0, 0.5), False, 4),  # all say the same: known
        (UNLIKE, Step(4, 0.0, 0.7), True, 4),  # all say something else: not known
        (UNLIKE, Step(4, 0.0, 0.75), True, 20),  # as high as the margin is not above it
        (ALIKE, Step(4, -0.1, 0.5), False, 20),
        (ALIKE, Step(4, 0.0, 0.4, 0.5), True, 4),  # moved
        (["", *ALIKE], Step(4, -1.0, 9.0), True, 4),  # a blank draft fires whatever the score
    ],
)
async def test_drawing_ends_when_the_side_is_decided(replies: list[str], step: Step, fires: bool, samples: int) -> None:
    model = Counting(replies)
    found = await verdict(model, "consistency", 0.2, Stopping((step,)))
    assert (found.fired, found.measured.samples) == (fires, samples)
    assert sum(n for _, n in model.asked) == samples
    if samples == 4 and replies[0]:
        assert (found.measured.uncertainty > 0.2) is fires  # what is recorded says the same as the verdict


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted), st.floats(0, 1), st.integers(1, 5))
def test_the_last_group_decides_by_the_threshold(margins: list[float], threshold: float, different: int) -> None:
    model = Counting(UNLIKE[:different])
    found = asyncio.run(verdict(model, "consistency", threshold, Stopping((Step(4, *margins), Step(8, -1.0, 2.0)))))
    whole = asyncio.run(verdict(Counting(UNLIKE[:different]), "consistency", threshold, None))
    if found.measured.samples == 20:
        assert (found.fired, found.measured.uncertainty) == (whole.fired, whole.measured.uncertainty)


@pytest.mark.parametrize("signal", DRAWING)
async def test_collecting_gives_the_scores_of_the_first_samples_of_two_draws(signal: str) -> None:
    model = Counting(UNLIKE, 1.0)
    found = (await verdict(model, signal, math.inf, Stopping(collecting=True))).measured
    made = registry.create(signal)
    assert isinstance(made, ContinuationSignal)
    assert model.asked == [(0, 40)]
    said = await made.continuation(Seeded(model), PROMPT, Decoding(), Sampling(40))
    for begin, scores in zip((0, 20), found.draws, strict=True):
        for count, score in zip(groups(20), scores, strict=True):
            assert score == pytest.approx(await made.uncertainty(model, PROMPT, said.part(begin, begin + count)))
    assert found.uncertainty == found.draws[0][-1]

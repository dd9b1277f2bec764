"""What every Signal must do. Subclass ``SignalConformance`` in a test file and set ``name``, or ``signal`` for one that is not
installed.

Its model is sure of some questions and wavers over others. A signal that the model's words cannot tell apart sets ``tells`` to
False.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import Measured, Sampling, Signal
from gnothi.signals.gate import Gate
from gnothi.signals.panel import Panel
from gnothi.signals.probe import Probe
from gnothi.testing.model import EVERYTHING, Reply, Scripted
from gnothi.types import Capabilities, Decoding, Generation, Passage, Prompt, Task

SURE = Prompt(Task("reason"), "Where was Mira Tolven born?", (Passage("p", "Mira Tolven was born in Kestrel."),))
UNSURE = Prompt(Task("reason"), "Where was Oda Brack born?")
DECODING = Decoding(max_tokens=20)
WAVERING = ("Perhaps in Ulm, or maybe somewhere else.", "In Kestrel", "It might be Corda", "I am not certain", "In Orvel")


def speaker(prompt: Prompt) -> list[Reply]:
    """The suite's model: sure where passages are shown."""
    sure = bool(prompt.passages)
    if prompt.task.name == "know":
        return [Reply("Yes, I know: Kestrel." if sure else "No, I don't know.")]
    if prompt.task.name == "confidence":
        return [Reply("95 %" if sure else "20 %")]
    if sure:
        return [Reply("In Kestrel.", (-0.01,))]
    return [Reply(text, (-2.0 - place,), doubt=1.0) for place, text in enumerate(WAVERING)]


class Slow(Scripted):
    """Gives way before it replies, so that concurrent measurements interleave."""

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await asyncio.sleep(0)
        return await super().generate(prompt, decoding)


class SignalConformance:
    """``tells``: whether the model's wavering shows in the uncertainty. ``probe`` for a signal that reads one, ``count`` for
    one that counts in an index."""

    name: ClassVar[str]
    signal: ClassVar[Any] = None
    tells: ClassVar[bool] = True
    probe: ClassVar[Probe | None] = None
    count: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def known(self) -> Iterator[None]:
        """One that is not installed is known by its name for as long as a test runs."""
        if self.signal is not None:
            type(self).name = registry.SIGNALS.add(registry.name_of(self.signal), registry.find(self.signal))
        yield
        if self.signal is not None:
            registry.SIGNALS.remove(self.name)

    def make(self) -> Signal:
        return registry.create(self.name, Sampling(5), probe=self.probe, count=self.count)

    async def measured(self, prompt: Prompt, model: LanguageModel | None = None) -> Measured:
        return await self.make().measure(model or Scripted(speaker), prompt, DECODING)

    def test_is_known_by_its_name_and_says_what_it_needs(self) -> None:
        registered, built = registry.find(self.name), self.make()
        assert self.name in registry.names()
        assert registered.name == built.name == self.name
        assert isinstance(registered.needs, Capabilities)
        assert registered.default_threshold is None or math.isfinite(registered.default_threshold)

    async def test_gives_the_greedy_continuation_and_a_number(self) -> None:
        for prompt in (SURE, UNSURE):
            result = await self.measured(prompt)
            assert result.greedy == await Scripted(speaker).generate(prompt, DECODING)
            assert isinstance(result.uncertainty, float)
            assert math.isfinite(result.uncertainty)

    async def test_is_higher_where_the_model_wavers(self) -> None:
        if not self.tells:
            pytest.skip("not shown by the words of this model")
        assert (await self.measured(UNSURE)).uncertainty > (await self.measured(SURE)).uncertainty

    async def test_the_same_prompt_twice_gives_the_same_number(self) -> None:
        assert await self.measured(UNSURE) == await self.measured(UNSURE)

    async def test_concurrent_measurements_equal_sequential_ones(self) -> None:
        model = Slow(speaker)
        prompts = [SURE, UNSURE, replace(UNSURE, question="Where was Ida Corm born?")] * 3
        sequential = [await self.measured(prompt, model) for prompt in prompts]
        assert list(await asyncio.gather(*(self.measured(prompt, model) for prompt in prompts))) == sequential

    async def test_beside_others_it_is_what_it_is_alone(self) -> None:
        signals = {self.name: self.make(), "other": registry.create("consistency", Sampling(3))}
        together = await Panel(signals)(Scripted(speaker), UNSURE, DECODING)
        alone = await self.measured(UNSURE)
        assert together[self.name].uncertainty == pytest.approx(alone.uncertainty, rel=1e-9)

    @pytest.mark.parametrize("text", ["", "  \n"])
    async def test_of_a_model_that_says_nothing_nothing_is_certain(self, text: str) -> None:
        """A number or infinity: a gate fires at a blank draft in any case."""
        result = await self.measured(UNSURE, Scripted(lambda _: Reply(text, doubt=1.0)))
        assert not math.isnan(result.uncertainty)
        assert (await Gate(self.make(), 1e9)(Scripted(lambda _: text), UNSURE, DECODING)).fired

    async def test_runs_on_a_model_that_offers_just_what_it_needs(self) -> None:
        model = Scripted(speaker, capabilities=registry.find(self.name).needs)
        assert math.isfinite((await self.measured(UNSURE, model)).uncertainty)
        assert self.name in registry.within(EVERYTHING, self.probe, self.count is not None)

    async def test_an_error_comes_through_as_itself(self) -> None:
        def broken(_: Prompt) -> Reply:
            raise ConnectionError("the model is gone")

        with pytest.raises(ConnectionError, match="gone"):
            await self.measured(UNSURE, Scripted(broken))

    async def test_a_gate_goes_by_it_and_says_so(self) -> None:
        alone = (await self.measured(UNSURE)).uncertainty
        for threshold, verdict in ((alone + 1, "trust"), (alone - 1, "retrieve")):
            with events.record() as happened:
                result = await Gate(self.make(), threshold)(Scripted(speaker), UNSURE, DECODING)
            (decided,) = [event for event in happened if isinstance(event, events.Decided)]
            assert (decided.signal, decided.threshold, decided.verdict) == (self.name, threshold, verdict)
            assert result.fired is (verdict == "retrieve")

"""Samples of one prompt, drawn in groups: each goes on where the one before ended, so that all are those of one draw."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, Continuing, Measured, Sampling, Signal, said_as
from gnothi.signals.stopping import Stopping, groups
from gnothi.types import Decoding, Prompt


def rule_of(signal: Signal) -> tuple[Continuing, Sampling, Stopping] | None:
    """A signal that draws samples by a rule, how it draws, and the rule; None for any other."""
    if not isinstance(signal, Continuing) or (drawn := signal.drawn) is None or drawn.stopping is None:
        return None
    return signal, replace(drawn, stopping=None), drawn.stopping


@dataclass(slots=True)
class Drawing:
    """What was said so far in reply to a prompt. Where scores are to be ``comparable`` with those of all samples, fewer are
    repeated in turn until they are as many: U of k equal samples, say, depends on k."""

    signal: Continuing
    sampling: Sampling
    model: LanguageModel
    prompt: Prompt
    decoding: Decoding
    comparable: bool = False
    said: Continued | None = field(default=None, init=False)

    async def measure(self, samples: int) -> Measured:
        """The score of the first ``samples``, which may not be fewer than before."""
        drawn = replace(self.sampling, samples=samples)
        if self.said is None:
            self.said = await self.signal.said(self.model, self.prompt, self.decoding, drawn)
        elif (have := len(self.said.samples.generations)) < samples:
            more = drawn.draw(self.model, self.prompt, self.decoding, self.signal.states, after=have)
            self.said = self.said.with_more(await more)
        return Measured(self.said.greedy, await self._score(self.said), samples)

    async def collect(self) -> Measured:
        """The score of the first draw, and of the parts of it and of a second one. Of a model that draws by seed, the first is
        that without the second."""
        k = self.sampling.samples
        said = await self.signal.said(self.model, self.prompt, self.decoding, replace(self.sampling, samples=2 * k))
        draws = [[await self._score(said.part(begin, begin + wanted)) for wanted in groups(k)] for begin in (0, k)]
        return Measured(said.greedy, draws[0][-1], draws=tuple(tuple(map(said_as, scores)) for scores in draws))

    async def _score(self, said: Continued) -> float:
        said = said.filled(self.sampling.samples) if self.comparable else said
        return await self.signal.uncertainty(self.model, self.prompt, said)

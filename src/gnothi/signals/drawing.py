"""Samples of one prompt, drawn in groups: each goes on where the one before ended, so that all are those of one draw. And of
several prompts the one that a model continues with the least uncertainty (SeaKR, sections 3.3 and 3.4).

A comparison needs the least score, not the numbers: where a rule says how far it has to be ``apart`` from the next one, all
are drawn on together until it is (``signals.stopping``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gnothi import events
from gnothi.concurrency import gather
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, Continuing, Measured, Sampling, Signal, said_as
from gnothi.signals.replies import says_nothing
from gnothi.signals.stopping import Lead, Stopping, groups
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


KIND = "compare"
"""What events and rows call it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Measures all prompts at a time. The uncertainty of a continuation that is ``silent`` counts for nothing.

    With a rule for stopping it emits Decided, kind ``compare``: the least score, and how many samples each prompt took."""

    signal: Signal
    silent: Callable[[str], bool] = says_nothing

    async def __call__(self, model: LanguageModel, asked: Sequence[tuple[Prompt, Decoding]]) -> list[Measured]:
        """Of each prompt and decoding, in order."""
        ruled = rule_of(self.signal)
        if ruled is None or not ruled[2].compares:
            return await gather(*(self.signal.measure(model, *one) for one in asked))
        signal, sampling, rule = ruled
        drawings = [Drawing(signal, sampling, model, *one, comparable=True) for one in asked]
        if rule.collecting:
            measured = await gather(*(drawing.collect() for drawing in drawings))
        else:
            measured = await self._until_apart(drawings, rule, sampling.samples)
        said = self._counting(measured)
        least = min(said, key=lambda one: one.uncertainty, default=measured[0])
        draws = tuple(scores for one in said for scores in one.draws)
        verdict = f"least of {len(measured)}"
        events.emit(events.Decided(KIND, self.signal.name, least.score, None, verdict, samples=least.samples, draws=draws))
        return [replace(one, samples=None, draws=()) for one in measured]

    async def _until_apart(self, drawings: Sequence[Drawing], rule: Stopping, samples: int) -> list[Measured]:
        leads = rule.leads if len(drawings) > 1 else [Lead(count, 0.0) for count in rule.alone]
        for lead in (*leads, Lead(samples, 0.0)):
            measured = await gather(*(drawing.measure(lead.samples) for drawing in drawings))
            least, *others = sorted(one.uncertainty for one in self._counting(measured)) or [0.0]
            if not others or others[0] - least >= lead.apart:
                break
        return measured

    def _counting(self, measured: Sequence[Measured]) -> list[Measured]:
        return [one for one in measured if not self.silent(one.greedy.text.strip())]

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
from gnothi.signals.base import ContinuationSignal, Continued, Measured, Sampling, Signal, finite_or_none
from gnothi.signals.replies import says_nothing
from gnothi.signals.stopping import Lead, Stopping, groups
from gnothi.types import Decoding, Prompt


def rule_of(signal: Signal) -> tuple[ContinuationSignal, Sampling, Stopping] | None:
    """A signal that draws samples by a rule, how it draws, and the rule; None for any other."""
    if not isinstance(signal, ContinuationSignal) or (sampling := signal.sampling) is None or sampling.stopping is None:
        return None
    return signal, replace(sampling, stopping=None), sampling.stopping


@dataclass(slots=True)
class Drawing:
    """The continuations of a prompt so far. Where scores are to be ``comparable`` with those of all samples, fewer are
    repeated in turn until they are as many: U of k equal samples, say, depends on k."""

    signal: ContinuationSignal
    sampling: Sampling
    model: LanguageModel
    prompt: Prompt
    decoding: Decoding
    comparable: bool = False
    continued: Continued | None = field(default=None, init=False)

    async def measure(self, samples: int) -> Measured:
        """The score of the first ``samples``, which may not be fewer than before."""
        sampling = replace(self.sampling, samples=samples)
        if self.continued is None:
            self.continued = await self.signal.continuation(self.model, self.prompt, self.decoding, sampling)
        elif (have := len(self.continued.samples.generations)) < samples:
            more = sampling.draw(self.model, self.prompt, self.decoding, self.signal.states, after=have)
            self.continued = self.continued.with_more(await more)
        return Measured(self.continued.greedy, await self._score(self.continued), samples)

    async def collect(self) -> Measured:
        """The score of the first draw, and of the parts of it and of a second one. Of a model that draws by seed, the first is
        that without the second."""
        k = self.sampling.samples
        continued = await self.signal.continuation(
            self.model, self.prompt, self.decoding, replace(self.sampling, samples=2 * k)
        )
        draws = [[await self._score(continued.part(begin, begin + count)) for count in groups(k)] for begin in (0, k)]
        return Measured(continued.greedy, draws[0][-1], draws=tuple(tuple(map(finite_or_none, scores)) for scores in draws))

    async def _score(self, continued: Continued) -> float:
        continued = continued.filled(self.sampling.samples) if self.comparable else continued
        return await self.signal.uncertainty(self.model, self.prompt, continued)


KIND = "compare"
"""What events and rows call it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Measures all prompts at a time. The uncertainty of a continuation that is ``silent`` counts for nothing.

    With a rule for stopping it emits Decided, kind ``compare``: the least score, and how many samples each prompt took."""

    signal: Signal
    silent: Callable[[str], bool] = says_nothing

    async def __call__(self, model: LanguageModel, prompts: Sequence[tuple[Prompt, Decoding]]) -> list[Measured]:
        """Of each prompt and decoding, in order."""
        ruled = rule_of(self.signal)
        if ruled is None or not ruled[2].compares:
            return await gather(*(self.signal.measure(model, *one) for one in prompts))
        signal, sampling, rule = ruled
        drawings = [Drawing(signal, sampling, model, *one, comparable=True) for one in prompts]
        if rule.collecting:
            measured = await gather(*(drawing.collect() for drawing in drawings))
        else:
            measured = await self._until_apart(drawings, rule, sampling.samples)
        counting = self._counting(measured)
        least = min(counting, key=lambda one: one.uncertainty, default=measured[0])
        draws = tuple(scores for one in counting for scores in one.draws)
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

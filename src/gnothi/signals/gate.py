"""A gate: a signal's score against a threshold decides whether evidence is looked for (SeaKR, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continuing, Foreseen, Measured, Sampling, Signal, said_as
from gnothi.signals.replies import says_nothing
from gnothi.signals.stopping import Step, groups
from gnothi.types import Decoding, Generation, Prompt

SCORE_DIGITS = 4
"""Floating-point sums depend on what else is in a batch, in about the sixth digit (measured on random models), and 1 - 7/10 is
more than 0.3: so many significant digits of a score decide, and are recorded."""
_UNSAID = Generation("")


def decisive(score: float) -> float:
    """The digits of a score that count. What is infinite stays so."""
    return float(f"{score:.{SCORE_DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured and whether the gate fired; without a draft where the gate was told that none is needed then."""

    measured: Measured
    fired: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """Fires when the uncertainty, in its ``decisive`` digits, exceeds ``threshold``, and when the draft is ``silent``: blank or
    saying that the model does not know.

    A ``threshold`` of None fires always, yet measures: the scores of a run that always retrieves show what a gate would do.
    With ``draft`` false, nothing is generated where a signal that needs no draft (``Foreseen``) makes the gate fire.
    Emits Drafted where there is a draft, then Decided with ``kind`` and a verdict of ``retrieve`` (fired) or ``trust``.
    """

    signal: Signal
    threshold: float | None
    kind: str = "retrieve"
    draft: bool = True
    silent: Callable[[str], bool] = says_nothing

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Verdict:
        if isinstance(self.signal, Foreseen) and not self.draft:
            foreseen = Measured(_UNSAID, await self.signal.foresee(model, prompt))
            if self._above(foreseen):
                events.emit(self._decided(foreseen, "retrieve", prompt.question))
                return Verdict(foreseen, True)
            measured = replace(foreseen, greedy=await model.generate(prompt, decoding))
        else:
            measured = await self.measure(model, prompt, decoding)
        return self.judge(measured)

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        """What there is to ``judge``, of as few samples as the signal's rule for ``stopping`` needs."""
        signal, asked = self.signal, (model, prompt, decoding)
        if not isinstance(signal, Continuing) or (drawn := signal.drawn) is None or drawn.stopping is None:
            return await signal.measure(*asked)
        if drawn.stopping.collecting:
            return await _collected(signal, drawn, *asked)
        return await self._of_few(signal, replace(drawn, stopping=None), drawn.stopping.steps, *asked)

    def judge(self, measured: Measured) -> Verdict:
        """What follows from a draft's score."""
        draft = measured.greedy.text.strip()
        fired = self.silent(draft) or self._above(measured)
        events.emit(events.Drafted(draft, measured.score))
        events.emit(self._decided(measured, "retrieve" if fired else "trust", draft))
        return Verdict(measured, fired)

    async def _of_few(
        self,
        signal: Continuing,
        drawn: Sampling,
        steps: Sequence[Step],
        model: LanguageModel,
        prompt: Prompt,
        decoding: Decoding,
    ) -> Measured:
        """Group by group, each of which goes on where the one before ended: samples are those of one draw."""
        counts = [*(step.samples for step in steps), drawn.samples]
        said = await signal.said(model, prompt, decoding, replace(drawn, samples=counts[0]))
        for step, wanted in zip(steps, counts[1:], strict=True):
            score = decisive(decisive(await signal.uncertainty(model, prompt, said)) + step.moved)
            if self.silent(said.greedy.text.strip()) or not step.known < score <= step.searched:
                return Measured(said.greedy, score, step.samples)
            more = replace(drawn, samples=wanted).draw(model, prompt, decoding, signal.states, after=step.samples)
            said = said.with_more(await more)
        return Measured(said.greedy, await signal.uncertainty(model, prompt, said), drawn.samples)

    def _above(self, measured: Measured) -> bool:
        return self.threshold is None or not decisive(measured.uncertainty) <= self.threshold

    def _decided(self, measured: Measured, verdict: str, subject: str) -> events.Decided:
        found = measured.score, self.threshold, verdict, subject, measured.samples, measured.draws
        return events.Decided(self.kind, self.signal.name, *found)


async def _collected(signal: Continuing, drawn: Sampling, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
    """The score of the first draw, and of the parts of it and of a second one. Of a model that draws by seed, the first is that
    without the second."""
    k = drawn.samples
    said = await signal.said(model, prompt, decoding, replace(drawn, samples=2 * k, stopping=None))
    draws = [
        [await signal.uncertainty(model, prompt, said.part(begin, begin + wanted)) for wanted in groups(k)] for begin in (0, k)
    ]
    return Measured(said.greedy, draws[0][-1], draws=tuple(tuple(map(said_as, scores)) for scores in draws))

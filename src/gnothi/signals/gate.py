"""A gate: a signal's score against a threshold decides whether evidence is looked for (SeaKR, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured, PromptSignal, Signal
from gnothi.signals.drawing import Drawing, rule_of
from gnothi.signals.replies import says_nothing
from gnothi.types import Decoding, Generation, Prompt

SCORE_DIGITS = 4
"""Floating-point sums depend on what else is in a batch, in about the sixth digit (measured on random models), and 1 - 7/10 is
more than 0.3: so many significant digits of a score decide, and are recorded."""
_NO_DRAFT = Generation("")


def decisive(score: float) -> float:
    """The digits of a score that count. What is infinite stays so."""
    return float(f"{score:.{SCORE_DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured and whether the gate fired; without a draft where it fired and ``Gate.draft`` is false."""

    measured: Measured
    fired: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """Fires when the uncertainty, in its ``decisive`` digits, exceeds ``threshold``, and when the draft is ``silent``: blank or
    saying that the model does not know.

    A ``threshold`` of None fires always, yet measures: the scores of a run that always retrieves show what a gate would do.
    With ``draft`` false, nothing is generated where a signal that needs no draft (``PromptSignal``) makes the gate fire.
    Emits Drafted where there is a draft, then Decided with ``kind`` and a verdict of ``retrieve`` (fired) or ``trust``.
    """

    signal: Signal
    threshold: float | None
    kind: str = "retrieve"
    draft: bool = True
    silent: Callable[[str], bool] = says_nothing

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Verdict:
        if isinstance(self.signal, PromptSignal) and not self.draft:
            without_draft = Measured(_NO_DRAFT, await self.signal.from_prompt(model, prompt))
            if self._above(without_draft):
                events.emit(self._decided(without_draft, "retrieve", prompt.question))
                return Verdict(without_draft, True)
            measured = replace(without_draft, greedy=await model.generate(prompt, decoding))
        else:
            measured = await self.measure(model, prompt, decoding)
        return self.judge(measured)

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        """What there is to ``judge``, of as few samples as the signal's rule for ``stopping`` needs."""
        if (ruled := rule_of(self.signal)) is None:
            return await self.signal.measure(model, prompt, decoding)
        signal, sampling, rule = ruled
        drawing = Drawing(signal, sampling, model, prompt, decoding)
        if rule.collecting and not self._always:
            return await drawing.collect()
        for step in rule.steps:
            measured = await drawing.measure(step.samples)
            score = decisive(decisive(measured.uncertainty) + step.moved)
            if self.silent(measured.greedy.text.strip()) or not step.known < score <= step.searched:
                return replace(measured, uncertainty=score)
        return await drawing.measure(sampling.samples)

    def judge(self, measured: Measured) -> Verdict:
        """What follows from a draft's score."""
        draft = measured.greedy.text.strip()
        fired = self.silent(draft) or self._above(measured)
        events.emit(events.Drafted(draft, measured.score))
        events.emit(self._decided(measured, "retrieve" if fired else "trust", draft))
        return Verdict(measured, fired)

    @property
    def _always(self) -> bool:
        return self.threshold is None or self.threshold == float("-inf")

    def _above(self, measured: Measured) -> bool:
        return self.threshold is None or not decisive(measured.uncertainty) <= self.threshold

    def _decided(self, measured: Measured, verdict: str, subject: str) -> events.Decided:
        outcome = measured.score, self.threshold, verdict, subject, measured.samples, measured.draws
        return events.Decided(self.kind, self.signal.name, *outcome)

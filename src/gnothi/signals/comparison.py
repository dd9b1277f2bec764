"""Of several prompts, the one that a model continues with the least uncertainty (SeaKR, sections 3.3 and 3.4).

A comparison needs the least score, not the numbers: where a rule says how far it has to be ``apart`` from the next one, all
are drawn on together until it is (``signals.stopping``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gnothi import events
from gnothi.concurrency import gather
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured, Signal
from gnothi.signals.drawing import Drawing, rule_of
from gnothi.signals.replies import says_nothing
from gnothi.signals.stopping import Lead, Stopping
from gnothi.types import Decoding, Prompt

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

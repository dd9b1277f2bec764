"""A gate: a signal's score against a threshold decides whether evidence is looked for (SeaKR, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured, Signal
from gnothi.signals.replies import says_nothing
from gnothi.types import Decoding, Prompt


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured and whether the gate fired."""

    measured: Measured
    fired: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """Fires when the uncertainty exceeds ``threshold``, and when the draft is blank or says that the model does not know.

    A ``threshold`` of None fires always, yet measures: the scores of a run that always retrieves show what a gate would do.
    Emits Drafted, then Decided with ``kind`` and a verdict of ``retrieve`` (fired) or ``trust``.
    """

    signal: Signal
    threshold: float | None
    kind: str = "retrieve"

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Verdict:
        measured = await self.signal.measure(model, prompt, decoding)
        draft = measured.greedy.text.strip()
        fired = says_nothing(draft) or self.threshold is None or not measured.uncertainty <= self.threshold
        events.emit(events.Drafted(draft, measured.score))
        verdict = "retrieve" if fired else "trust"
        events.emit(events.Decided(self.kind, self.signal.name, measured.score, self.threshold, verdict, draft))
        return Verdict(measured, fired)

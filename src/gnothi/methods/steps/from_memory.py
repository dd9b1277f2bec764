"""Asked first, and left alone where it knows: a gate before any method that looks things up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gnothi.fields import setting
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.protocols import LanguageModel
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedSettings(ReaderSettings):
    """Whether a gate decides, by which signal and at which threshold."""

    gate: SignalName | None = setting(
        None, "Ask first, and look up only where this signal says uncertain (self_report: 1 - P(Yes)); none: always look up."
    )
    gate_threshold: float | None = setting(
        None,
        "Look up above this uncertainty (none: the probe's, the one calibrated on the model, or the usual one).",
    )

    group: ClassVar[str] = "gate"
    gating: ClassVar[GateSpec] = GateSpec("gate", "gate_threshold")

    def check_gate(self, thresholds: Mapping[str, float]) -> None:
        """Raise InvalidSetting for a gate that has no threshold: none given, calibrated or usual."""
        if self.gate is not None:
            self.gating.require(self.gate, threshold_of(thresholds, self.gate, self.gate_threshold, self.probe))

    async def from_memory(self, model: LanguageModel, question: Question) -> Answer | None:
        """The model's answer from memory where the gate trusts it; None where it does not, or there is no gate."""
        threshold = threshold_of(model.profile.thresholds, self.gate, self.gate_threshold, self.probe)
        if self.gate is None or threshold is None:
            return None
        prompt = self.reading(question)
        verdict = await Gate(self.make_signal(self.gate), threshold, draft=False)(model, prompt, self.reply_decoding(prompt))
        return None if verdict.fired else await self.answer_from(model, prompt, verdict.measured)

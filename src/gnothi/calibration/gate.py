"""The gate of a method that is about to be made: its signal, the setting of its threshold, and what its scores depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnothi import methods
from gnothi.methods.planned import PlannedMethod
from gnothi.methods.steps.gating import Agreement, AnyGating
from gnothi.methods.steps.settings import settings_of
from gnothi.signals import registry

_REPLY = frozenset({"max_tokens", "form", "reason"})


@dataclass(frozen=True, slots=True)
class CalibratedGate:
    """``signal`` is None for a gate that always or never fires; ``settings`` are those that scores depend on, ``value`` is what
    the setting of the threshold says (None: nothing was chosen)."""

    gating: AnyGating
    signal: str | None
    settings: Mapping[str, Any]
    value: Any = None

    @property
    def key(self) -> str:
        """The setting of the threshold."""
        return self.gating.threshold

    def at(self, threshold: float) -> dict[str, Any]:
        """The settings that make it retrieve above ``threshold``, which may be infinite."""
        return self.gating.at(threshold, self.settings)

    def measured(self) -> dict[str, Any]:
        """Settings that scores are to be collected with, beside a gate that never retrieves."""
        return self.gating.collecting()


def gate_of(method: PlannedMethod) -> CalibratedGate | None:
    """None for a method without a gate, or one whose threshold cannot be chosen."""
    gating, values = method.gating, method.values
    if gating is None or not gating.decides(values):
        return None
    signal = gating.signal_of(values)
    return CalibratedGate(gating, signal, scores_depend_on(values, signal, method.name), values[gating.threshold])


def scores_depend_on(settings: Mapping[str, Any], signal: str | None, method: str) -> dict[str, Any]:
    """Those of a method's settings that the scores of ``signal``, and the answers beside them, depend on: how it replies, and
    what the signal has a use for."""
    gating = methods.gating_of(method) if method in methods.names() else None
    if isinstance(gating, Agreement):
        return {key: settings[key] for key in gating.depends_on}
    used = settings_of(signal) if signal in registry.names() else gating.learnt if gating else ()
    return {key: value for key, value in settings.items() if key in {*_REPLY, *used}}

"""The gate of a method that is about to be made: its signal, the setting of its threshold, and what its scores depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnothi.methods.planned import PlannedMethod

AGREEMENT = "alpha"
"""How KEQA calls the share of tries that must agree: it retrieves where the disagreement is above 1 minus it."""
_ASSESSED = {AGREEMENT, "assess", "tries"}


@dataclass(frozen=True, slots=True)
class CalibratedGate:
    """``signal`` is None for a gate that always or never fires; ``key`` is the setting of the threshold; ``settings`` are
    those that scores depend on."""

    signal: str | None
    key: str
    settings: Mapping[str, Any]

    def at(self, threshold: float) -> dict[str, Any]:
        """The settings that make it retrieve above ``threshold``, which may be infinite."""
        if self.key != AGREEMENT:
            return {self.key: threshold}
        if threshold < 0:
            return {"assess": False}
        from gnothi.signals.grouping import needed

        # Scores are kept to four digits, and shares of tries lie further apart.
        tries = self.settings["tries"]
        return {self.key: needed(1.0 - min(threshold, 1.0) - 1e-4, tries) / tries}

    def measured(self) -> dict[str, Any]:
        """Settings that scores are to be collected with, beside a gate that never retrieves."""
        return {"schedule": "at_once"} if self.key == AGREEMENT else {}


def gate_of(method: PlannedMethod) -> CalibratedGate | None:
    """None for a method without a gate, or one whose threshold cannot be chosen."""
    from gnothi.signals import registry

    if method.gating is None:
        if not method.values.keys() >= _ASSESSED or not method.values["assess"]:
            return None
        return CalibratedGate("consistency", AGREEMENT, scores_depend_on(method.values, "consistency"))
    named = method.values[method.gating.signal]
    signal = named if named in registry.names() else None
    return CalibratedGate(signal, method.gating.threshold, scores_depend_on(method.values, signal))


def scores_depend_on(settings: Mapping[str, Any], signal: str | None) -> dict[str, Any]:
    """Those of a method's settings that the scores of ``signal``, and the answers beside them, depend on: how it replies, and
    what the signal has a use for."""
    from gnothi.methods.steps.settings import READ_AS
    from gnothi.signals import registry

    if settings.keys() >= _ASSESSED:
        return {key: settings[key] for key in ("tries", "temperature", "top_p", "decompose", "judge")}
    wanted = {"max_tokens", "form", "reason"}
    if signal in registry.names():
        wanted |= {key for part in READ_AS.keys() & registry.takes(signal) for key in READ_AS[part]}
    else:  # what compose's gates by the question alone have learnt
        wanted |= {"knowledge", "neighbours", "classifier"}
    return {key: value for key, value in settings.items() if key in wanted}

"""Which threshold a gate has, where nobody set one."""

from __future__ import annotations

from gnothi.protocols import LanguageModel
from gnothi.signals import registry as signals


def threshold_of(model: LanguageModel, signal: str | None, given: float | None) -> float | None:
    """As given, else as calibrated on the model, else the signal's usual one; None where there is none (or no signal)."""
    if signal is None or given is not None:
        return given
    return model.thresholds.get(signal, signals.find(signal).default_threshold)

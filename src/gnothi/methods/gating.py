"""Which threshold a gate has, where nobody set one."""

from __future__ import annotations

from collections.abc import Mapping

from gnothi.signals import registry as signals


def threshold_of(thresholds: Mapping[str, float], signal: str | None, given: float | None) -> float | None:
    """As given, else as calibrated on the model (``thresholds``), else the signal's usual one; None where there is none, and
    without a signal."""
    if signal is None or given is not None:
        return given
    return thresholds.get(signal, signals.find(signal).default_threshold)

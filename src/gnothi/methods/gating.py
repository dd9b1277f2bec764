"""Which threshold a gate has, where nobody set one."""

from __future__ import annotations

from collections.abc import Mapping

from gnothi.signals import registry as signals
from gnothi.signals.probe import Probe


def threshold_of(
    thresholds: Mapping[str, float], signal: str | None, given: float | None, probe: Probe | None = None
) -> float | None:
    """As given, else as the ``probe`` of the signal has it, else as calibrated on the model (its ``thresholds``), else the
    signal's usual one; None where there is none."""
    if signal is None or given is not None:
        return given
    learnt = {} if probe is None else probe.thresholds
    return learnt.get(signal, thresholds.get(signal, signals.find(signal).default_threshold))

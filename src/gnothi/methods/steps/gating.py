"""How a method declares its gate, and which threshold that has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gnothi.errors import InvalidSetting
from gnothi.signals import registry as signals
from gnothi.signals.probe import Probe

ASSESSED = frozenset({"assess", "alpha", "tries"})
"""The settings of a gate that is no signal's: whether, and in which share of how many tries, answers must agree (KEQA)."""


@dataclass(frozen=True, slots=True)
class Gating:
    """The settings that name a gate's signal and set its threshold; ``speaker`` is the field of the model that the gate listens
    to, where that may be another than the main one."""

    signal: str
    threshold: str
    speaker: str | None = None

    def require(self, signal: str, threshold: float | None) -> None:
        """Raise InvalidSetting for a signal without a threshold: none given, calibrated or usual."""
        if threshold is None:
            raise InvalidSetting(
                f"setting {self.threshold!r}: got none, but signal {signal!r} has no usual threshold. Give one with "
                f"<--set {self.threshold}=...>, chosen from the scores of earlier runs (`gnothi calibrate`)."
            )


def threshold_of(
    thresholds: Mapping[str, float], signal: str | None, given: float | None, probe: Probe | None = None
) -> float | None:
    """As given, else as the ``probe`` of the signal has it, else as calibrated on the model (its ``thresholds``), else the
    signal's usual one; None where there is none."""
    if signal is None or given is not None:
        return given
    name, learnt = signals.name_of(signal), {} if probe is None else probe.thresholds
    return learnt.get(name, thresholds.get(name, signals.find(signal).default_threshold))

"""How a method declares its gate, and which threshold that has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gnothi.errors import InvalidSetting
from gnothi.signals import registry as signals
from gnothi.signals.grouping import needed
from gnothi.signals.probe import Probe


@dataclass(frozen=True, slots=True)
class Gating:
    """What a method's gate is made of: the settings that name its signal and set its threshold; ``speaker``, the field of the
    model that it listens to, where that may be another than the main one; ``open``, a setting that makes it fire always;
    ``learnt``, what it depends on where no signal of ours decides."""

    signal: str
    threshold: str
    speaker: str | None = None
    open: str | None = None
    learnt: tuple[str, ...] = ()

    shares: ClassVar[bool] = False
    """Whether the setting is a share of agreeing tries, and not the threshold itself."""

    def signal_of(self, values: Mapping[str, Any]) -> str | None:
        """The name of its signal; None for a gate that always or never fires, or is learnt."""
        named = values[self.signal]
        return named if named in signals.names() else None

    def decides(self, values: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether it has a threshold that can be chosen."""
        return True

    def at(self, threshold: float, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """The settings that make it retrieve above ``threshold``, which may be infinite."""
        return {self.threshold: threshold}

    def collecting(self) -> dict[str, Any]:
        """Settings that scores are to be collected with, beside a gate that never retrieves."""
        return {}

    def in_force(self, value: float | None) -> float | None:
        """The threshold that a value of the setting stands for."""
        return value

    @property
    def undecided(self) -> tuple[str, str]:
        """What the method does where no signal decides, and what to do about it."""
        return "asks no signal before it retrieves", f"Name one: <--set {self.signal}=perplexity>, say."

    def require(self, signal: str, threshold: float | None) -> None:
        """Raise InvalidSetting for a signal without a threshold: none given, calibrated or usual."""
        if threshold is None:
            raise InvalidSetting(
                f"setting {self.threshold!r}: got none, but signal {signal!r} has no usual threshold. Give one with "
                f"<--set {self.threshold}=...>, chosen from the scores of earlier runs (`gnothi calibrate`)."
            )


@dataclass(frozen=True, slots=True)
class Agreement:
    """A gate that fires where too few of several tries agree: the settings of that share (``threshold``), of the number of
    ``tries``, of whether they are made (``asks``) and when; and those that scores and answers depend on."""

    threshold: str
    tries: str
    asks: str
    schedule: str
    depends_on: tuple[str, ...]

    signal: ClassVar[None] = None
    speaker: ClassVar[None] = None
    open: ClassVar[None] = None
    shares: ClassVar[bool] = True

    def signal_of(self, values: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        return "consistency"

    def decides(self, values: Mapping[str, Any]) -> bool:
        return bool(values[self.asks])

    def at(self, threshold: float, values: Mapping[str, Any]) -> dict[str, Any]:
        if threshold < 0:
            return {self.asks: False}
        # Scores are kept to four digits, and shares of tries lie further apart.
        tries = values[self.tries]
        return {self.threshold: needed(1.0 - min(threshold, 1.0) - 1e-4, tries) / tries}

    def collecting(self) -> dict[str, Any]:
        return {self.schedule: "at_once"}

    def in_force(self, value: float | None) -> float | None:
        return None if value is None else 1.0 - value

    @property
    def undecided(self) -> tuple[str, str]:
        return f"asks nothing before it retrieves with {self.asks}=false: every quiz is looked up", ""


AnyGating = Gating | Agreement


def threshold_of(
    thresholds: Mapping[str, float], signal: str | None, given: float | None, probe: Probe | None = None
) -> float | None:
    """As given, else as the ``probe`` of the signal has it, else as calibrated on the model (its ``thresholds``), else the
    signal's usual one; None where there is none."""
    if signal is None or given is not None:
        return given
    name, learnt = signals.name_of(signal), {} if probe is None else probe.thresholds
    return learnt.get(name, thresholds.get(name, signals.find(signal).default_threshold))

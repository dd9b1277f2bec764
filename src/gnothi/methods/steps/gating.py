"""What a method's gate is: the settings that make it up, and, with their values, its signal and its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.signals import registry as signals
from gnothi.signals.grouping import needed
from gnothi.signals.probe import Probe
from gnothi.signals.stopping import KEY as STOPPING

REPLY = frozenset({"max_tokens", "form", "reason"})
"""The settings of replies that scores depend on."""


@dataclass(frozen=True, slots=True)
class GateSpec:
    """A method declares it with the names of its settings: ``signal_key`` names its signal (None: it is ``consistency``),
    ``key`` sets its threshold; ``speaker`` is the field of the model that it listens to, where that may be another than the
    main one; ``open`` makes it fire always.

    A gate that fires where too few of several ``tries`` agree (None: any other gate) has in ``key`` the share that has to:
    ``asks`` says whether they are made, ``schedule`` when, and ``depends_on`` names the settings that its scores and answers
    depend on.

    A planned method has it with ``values``, those of all its settings."""

    signal_key: str | None
    key: str
    speaker: str | None = None
    open: str | None = None
    tries: str | None = None
    asks: str | None = None
    schedule: str | None = None
    depends_on: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    def of(self, values: Mapping[str, Any]) -> GateSpec | None:
        """With the values of the settings; None where there is no threshold to choose, since nothing is asked."""
        return replace(self, values=values) if self.asks is None or values[self.asks] else None

    @property
    def signal(self) -> str | None:
        """The name of its signal; None for a gate that always or never fires, or is learnt."""
        named = "consistency" if self.signal_key is None else self.values[self.signal_key]
        return named if named in signals.SIGNALS else None

    @property
    def threshold(self) -> float | None:
        """The threshold that was given; None where the signal's own decides."""
        value: float | None = self.values[self.key]
        return value if value is None or self.tries is None else 1.0 - value

    @property
    def settings(self) -> dict[str, Any]:
        """Those that scores depend on, with their values."""
        return scores_depend_on(self.values, self.signal, self)

    def at(self, threshold: float) -> dict[str, Any]:
        """The settings that make it retrieve above ``threshold``, which may be infinite."""
        if self.tries is None or self.asks is None:
            return {self.key: threshold}
        if threshold < 0:
            return {self.asks: False}
        # Scores are kept to four digits, and shares of tries lie further apart.
        tries = self.values[self.tries]
        return {self.key: needed(1.0 - min(threshold, 1.0) - 1e-4, tries) / tries}

    def collecting(self) -> dict[str, Any]:
        """Settings that scores are to be collected with: those of a gate that never retrieves."""
        return self.at(float("inf")) | ({self.schedule: "at_once"} if self.schedule else {})

    @property
    def early(self) -> dict[str, str]:
        """The rule by which it stops drawing samples, by the setting; empty without one."""
        return {STOPPING: rule} if (rule := self.values.get(STOPPING)) else {}

    @property
    def stops(self) -> bool:
        """Whether it could stop drawing samples by a rule: its signal draws some, and the gate makes no tries of its own."""
        return self.signal is not None and self.tries is None and "sampling" in signals.takes(self.signal)

    @property
    def undecided(self) -> tuple[str, str]:
        """What the method does where no signal decides, and what to do about it."""
        if self.asks is not None:
            return f"asks nothing before it retrieves with {self.asks}=false: every quiz is looked up", ""
        return "asks no signal before it retrieves", f"Name one: <--set {self.signal_key}=perplexity>, say."

    def require(self, signal: str, threshold: float | None) -> None:
        """Raise InvalidSetting for a signal without a threshold: none given, calibrated or usual."""
        if threshold is None:
            raise InvalidSetting(
                f"setting {self.key!r}: got none, but signal {signal!r} has no usual threshold. Give one with "
                f"<--set {self.key}=...>, chosen from the scores of earlier runs (`gnothi calibrate`)."
            )


def scores_depend_on(values: Mapping[str, Any], signal: str | None, gate: GateSpec | None) -> dict[str, Any]:
    """Those of a method's settings that the scores of ``signal``, and the answers beside them, depend on: how it replies, and
    what the signal has a use for. ``gate`` is the method's, if it has one."""
    if gate is not None and gate.depends_on:
        return {key: values[key] for key in gate.depends_on}
    used = signals.settings_of(signal) if signal and signal in signals.SIGNALS else ()
    return {key: value for key, value in values.items() if key in {*REPLY, *used}}


def threshold_of(
    thresholds: Mapping[str, float], signal: str | None, threshold: float | None, probe: Probe | None = None
) -> float | None:
    """As given, else as the ``probe`` of the signal has it, else as calibrated on the model (its ``thresholds``), else the
    signal's usual one; None where there is none."""
    if signal is None or threshold is not None:
        return threshold
    name, learnt = signals.name_of(signal), {} if probe is None else probe.thresholds
    return learnt.get(name, thresholds.get(name, signals.find(signal).default_threshold))

"""Signals by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, cast, get_args

from gnothi.errors import InvalidSetting, UnknownName
from gnothi.signals.base import Sampling, Signal
from gnothi.signals.consistency import Consistency
from gnothi.signals.energy import Energy
from gnothi.signals.entropy import LengthNormalizedEntropy, MultiPerplexity
from gnothi.signals.gram import Gram
from gnothi.signals.least_likely import LeastLikely
from gnothi.signals.perplexity import Perplexity
from gnothi.signals.probe import Probe, QuestionProbe, StateProbe
from gnothi.signals.self_report import SaysItKnows, SelfReport
from gnothi.types import Capabilities, StateSpec

SignalName = Literal[
    "gram",
    "perplexity",
    "least_likely",
    "multi_perplexity",
    "ln_entropy",
    "energy",
    "consistency",
    "self_report",
    "prompt",
    "probe",
    "question",
]

_SIGNALS: Mapping[str, type[Signal]] = {
    signal.name: signal
    for signal in (
        Gram,
        Perplexity,
        LeastLikely,
        MultiPerplexity,
        LengthNormalizedEntropy,
        Energy,
        Consistency,
        SelfReport,
        SaysItKnows,
        StateProbe,
        QuestionProbe,
    )
}


def names() -> tuple[str, ...]:
    return get_args(SignalName)


def find(name: str) -> type[Signal]:
    """The class of that name, which tells ``needs`` and ``default_threshold``. Raises UnknownName."""
    if name not in _SIGNALS:
        raise UnknownName("signal", name, _SIGNALS)
    return _SIGNALS[name]


def create(
    name: str,
    sampling: Sampling | None = None,
    state: StateSpec | None = None,
    alpha: float = 1e-3,
    probe: Probe | None = None,
) -> Signal:
    """The signal of that name; what it has no use for (the state, for a signal of texts) is left aside.

    Raises UnknownName, or InvalidSetting for one that reads a probe and gets none."""
    signal = find(name)
    if probe is None and reads_probe(name):
        raise InvalidSetting(lacks_probe(name))
    settings = {"sampling": sampling or Sampling(), "state": state or StateSpec(), "alpha": alpha, "probe": probe}
    used = takes(name)
    return signal(**{key: value for key, value in settings.items() if key in used})


def takes(name: str) -> frozenset[str]:
    """Which of ``sampling``, ``state``, ``alpha`` and ``probe`` the signal has a use for. Raises UnknownName."""
    return frozenset(item.name for item in fields(cast("Any", find(name))))


def reads_probe(name: str) -> bool:
    """Whether the signal was learnt, and so takes a probe that holds what was."""
    return "probe" in takes(name)


def lacks_probe(name: str, key: str = "signal") -> str:
    """The message for a ``reads_probe`` signal, named by the setting ``key``, without a probe."""
    return (
        f"setting {key!r}: got {name!r}, which is learnt from training questions, but no probe. Give one with "
        "--set probe=FOLDER, made by `gnothi train probe QUESTIONS --model MODEL --out FOLDER` (for the laboratory's model: "
        "probe=lab)."
    )


def within(capabilities: Capabilities, probe: Probe | None = None) -> tuple[str, ...]:
    """Names of the signals that a model of these capabilities can give, by itself and with what the probe has learnt."""

    def possible(name: str, signal: type[Signal]) -> bool:
        learnt = not reads_probe(name) or (probe is not None and (signal is not StateProbe or bool(probe.states)))
        return learnt and not capabilities.lacking(signal.needs)

    return tuple(name for name, signal in _SIGNALS.items() if possible(name, signal))

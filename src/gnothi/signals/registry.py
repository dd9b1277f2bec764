"""Signals by name: those of ``signals/kinds``, those of other packages, and those given in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from gnothi.config import Named
from gnothi.errors import InvalidSetting
from gnothi.protocols import Count
from gnothi.registry import Registry
from gnothi.signals.base import Sampling, Signal
from gnothi.signals.entailment import Entailment
from gnothi.signals.of_function import as_signal
from gnothi.signals.probe import Probe
from gnothi.types import Capabilities, StateSpec

SIGNALS: Registry[type[Signal] | Signal] = Registry(
    "signal", "gnothi.signals", home="gnothi.signals.kinds", like=("name", "needs"), adapt=as_signal
)
"""Classes, which are made with the settings of a method; and signals that are ready to measure."""
SECTION = "signal"
"""What the settings of signals stand under, as in ``--set signal.samples=5``."""
PROBE = f"{SECTION}.probe"
_KEYS: Mapping[str, tuple[str, ...]] = {
    "sampling": ("samples", "temperature", "top_k", "top_p"),
    "state": ("layer", "site"),
    "alpha": ("alpha",),
    "probe": ("probe",),
    "entailment": ("entailment",),
    "count": ("corpus",),
}
"""What a signal may take (``takes``), and the settings that say it."""


def names() -> tuple[str, ...]:
    return SIGNALS.names()


def name_of(signal: str | Signal | type[Signal] | Callable[..., Any]) -> str:
    """The name by which settings and records know a signal. One given as an object, as a function, or as ``module:object``
    is known by its own name to who gave it: no other run or Rag of this process measures it.

    Raises InvalidSetting for an object that is no signal, or where its name is another's; BrokenPlugin for a module that cannot
    be imported."""
    if isinstance(signal, str) and (signal in SIGNALS or ":" not in signal):
        return signal
    value: Any = SIGNALS.imported(signal) if isinstance(signal, str) else as_signal(signal)
    lacking = [key for key in ("name", "needs", "default_threshold", "measure") if not hasattr(value, key)]
    if lacking or not isinstance(value.name, str):
        raise InvalidSetting(
            f"got {value!r:.100} for a signal, which has no {' and no '.join(lacking) or 'text for a name'}: expected the "
            "name of a signal, a function of (question, answers) that gives a number, or an object with name, needs, "
            "default_threshold and measure (gnothi.signals.base)."
        )
    if value.name in SIGNALS and type(value) is SIGNALS.find(value.name) and is_dataclass(value) and not fields(value):
        return str(value.name)  # nothing to set: it is what the name stands for
    return SIGNALS.bound(value.name, value)


SignalName = Annotated[str, Named(names, name_of)]
"""A setting that names a signal. An object with ``measure`` may stand for its name."""


def find(name: str | Signal) -> type[Signal] | Signal:
    """What is known by that name; it tells ``needs`` and ``default_threshold``. Raises UnknownName or BrokenPlugin."""
    return SIGNALS.find(name_of(name))


def create(
    name: str | Signal,
    sampling: Sampling | None = None,
    state: StateSpec | None = None,
    alpha: float = 1e-3,
    probe: Probe | None = None,
    entailment: Entailment | None = None,
    count: Count | None = None,
) -> Signal:
    """The signal of that name; what it has no use for (the state, for a signal of texts) is left aside.

    Raises UnknownName, or InvalidSetting for one that reads a probe, or counts in an index, and gets none."""
    signal, used = find(name), takes(name)
    if not isinstance(signal, type):
        return signal
    if probe is None and "probe" in used:
        raise InvalidSetting(lacks_probe(name_of(name)))
    if count is None and "count" in used:
        raise InvalidSetting(
            f"signal {name_of(name)!r} counts names in an index, and got none. Give one, made by `gnothi index build`, with "
            f"<--set {SECTION}.corpus=PATH>."
        )
    settings = {"sampling": sampling or Sampling(), "state": state or StateSpec(), "alpha": alpha, "probe": probe}
    settings |= {"entailment": entailment, "count": count}
    return signal(**{key: value for key, value in settings.items() if key in used})


def takes(name: str | Signal) -> frozenset[str]:
    """Which of ``sampling``, ``state``, ``alpha``, ``probe``, ``entailment`` and ``count`` it has a use for. Raises
    UnknownName."""
    signal = find(name)
    if not isinstance(signal, type) or not is_dataclass(signal):
        return frozenset()
    return frozenset(item.name for item in fields(signal)) & _KEYS.keys()


def settings_of(signal: str) -> tuple[str, ...]:
    """The keys of the settings that the signal of that name has; none for one without."""
    parts = takes(signal)
    return tuple(f"{SECTION}.{key}" for part, keys in _KEYS.items() if part in parts for key in keys)


def reads_probe(name: str | Signal) -> bool:
    """Whether the signal was learnt, and so takes a probe that holds what was."""
    return "probe" in takes(name)


def counts(name: str | Signal) -> bool:
    """Whether the signal counts in an index."""
    return "count" in takes(name)


def lacks_probe(name: str, key: str = "signal") -> str:
    """The message for a ``reads_probe`` signal, named by the setting ``key``, without a probe."""
    return (
        f"setting {key!r}: got {name!r}, which is learnt from training questions, but no probe. Give one with "
        "<--set signal.probe=FOLDER>, made by `gnothi train probe QUESTIONS --model MODEL --out FOLDER` (for the laboratory's "
        "model: signal.probe=lab)."
    )


def within(capabilities: Capabilities, probe: Probe | None = None, counted: bool = False) -> tuple[str, ...]:
    """Names of the signals that a model of these capabilities can give, by itself and with what the probe has learnt;
    ``counted``: and with an index that counts."""

    def possible(name: str, needs: Capabilities) -> bool:
        learnt = not reads_probe(name) or (probe is not None and (not needs.hidden_states or bool(probe.states)))
        return learnt and (counted or not counts(name)) and not capabilities.lacking(needs)

    return tuple(entry.name for entry, signal in SIGNALS.items() if possible(entry.name, signal.needs))

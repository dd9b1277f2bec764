"""What a calibration says, as settings: above the defaults, beneath what a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from gnothi import config, methods
from gnothi.calibration.file import Calibration
from gnothi.config import CALIBRATED, CHOSEN, Given, Settings, as_text
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import MODEL_SECTION, given_to
from gnothi.methods.registry import MethodSpec
from gnothi.methods.steps.gating import GateSpec
from gnothi.models.registry import scheme_of
from gnothi.signals import registry as signals
from gnothi.signals.stopping import KEY as STOPPING

WHOLE = "simple"
"""The form of methods whose scores are of whole replies."""


def depends_on(calibration: Calibration) -> dict[str, Any]:
    """The settings that its scores depend on: of whole replies, unless they say otherwise."""
    return {"form": WHOLE, **calibration.settings}


def settings_of(calibration: Calibration, names: Sequence[object], given: Settings, model: Any = None) -> dict[str, Given]:
    """Under the name of each method that the calibration is for: the gate's signal, its threshold, when it stops drawing, and
    what scores depend on. Of the ``model``, how its prompts were written, where that is not the default. Raises InvalidSetting
    where it is for none."""
    source, layer = f"<--calibration {calibration.source}>", dict[str, Given]()
    for spec, gate in _gates_for(calibration, [methods.spec(name) for name in names], given):
        depends = {key: value for key, value in depends_on(calibration).items() if key in spec.settings}
        depends |= {gate.signal_key: calibration.signal} if gate.signal_key else {}
        chosen = replace(gate, values={**spec.defaults, **depends}).at(calibration.threshold)
        chosen |= {gate.asks: True} if gate.asks and gate.asks not in chosen else {}
        chosen |= {gate.open: False} if gate.open else {}
        draws = calibration.signal in signals.SIGNALS and "sampling" in signals.takes(calibration.signal) and not gate.tries
        own = given_to(spec, given)
        # A rule for drawing fewer samples is of scores with these settings; others may be in force where a mismatch is ignored.
        other = any(key in own and as_text(own[key].value) != as_text(value) for key, value in depends.items())
        chosen |= {STOPPING: None if other else calibration.stopping} if draws or calibration.stopping else {}
        layer |= {f"{spec.name}.{key}": Given(value, source, CALIBRATED) for key, value in depends.items()}
        layer |= {f"{spec.name}.{key}": Given(value, source, CHOSEN) for key, value in chosen.items()}
    known = config.settings_of(scheme_of(model)[1].settings) if isinstance(model, str) else {}
    form = {key: value for key, value in calibration.form.items() if key in known and value != known[key].default}
    return layer | {f"{MODEL_SECTION}.{key}": Given(value, source, CALIBRATED) for key, value in form.items()}


def model_of(calibration: Calibration) -> str | None:
    """The main model where nobody named one; None where the file does not say, as where the gate listens to another."""
    gate = methods.spec(calibration.method).gate if calibration.method in methods.names() else None
    return None if gate and gate.speaker else calibration.model.name or None


def _gates_for(calibration: Calibration, specs: Sequence[MethodSpec], given: Settings) -> list[tuple[MethodSpec, GateSpec]]:
    """The method that it was made with, and those whose signal a user named so; where there are none, every one whose gate
    could have the signal. Raises InvalidSetting where there are none either."""
    named_signals = {spec.name: one for spec in specs if (one := _signal_given(spec, given)) is not None}
    gated = [(spec, spec.gate) for spec in specs if spec.gate and calibration.fires == "above"]
    named = [
        (spec, gate)
        for spec, gate in gated
        if (
            named_signals[spec.name].value == calibration.signal
            if spec.name in named_signals
            else spec.name == calibration.method
        )
    ]
    known = calibration.signal in signals.SIGNALS
    if gates := named or [(spec, gate) for spec, gate in gated if spec.name not in named_signals and gate.signal_key and known]:
        return gates
    has = "; ".join(f"{name} got {one.value!r} from {one.source}" for name, one in named_signals.items())
    raise InvalidSetting(
        f"<--calibration>: got {calibration.source}, a threshold for the signal {calibration.signal!r}, which no gate of "
        f"{', '.join(one.name for one in specs)} takes ({has or 'none can measure it'}). "
        "Leave out what names another signal, or name another method with <--method NAME>."
    )


def _signal_given(spec: MethodSpec, given: Settings) -> Given | None:
    """The name of the signal that somebody gave for the method's gate; None where nobody did."""
    given_signal = given_to(spec, given).get((spec.gate and spec.gate.signal_key) or "")
    name = (
        "none"
        if given_signal is None or given_signal.value is None
        else str(signals.name_of(cast("Any", given_signal.value))).strip()
    )
    return given_signal and given_signal._replace(value=name)

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


def depends_on(found: Calibration) -> dict[str, Any]:
    """The settings that its scores depend on: of whole replies, unless they say otherwise."""
    return {"form": WHOLE, **found.settings}


def settings_of(found: Calibration, names: Sequence[object], given: Settings, model: Any = None) -> dict[str, Given]:
    """Under the name of each method that the calibration is for: the gate's signal, its threshold, when it stops drawing, and
    what scores depend on. Of the ``model``, how its prompts were written, where that is not the default. Raises InvalidSetting
    where it is for none."""
    source, layer = f"<--calibration {found.source}>", dict[str, Given]()
    for spec, gate in _meant(found, [methods.spec(name) for name in names], given):
        depends = {key: value for key, value in depends_on(found).items() if key in spec.settings}
        depends |= {gate.signal_key: found.signal} if gate.signal_key else {}
        chosen = replace(gate, values={**spec.defaults, **depends}).at(found.threshold)
        chosen |= {gate.asks: True} if gate.asks and gate.asks not in chosen else {}
        chosen |= {gate.open: False} if gate.open else {}
        draws = found.signal in signals.SIGNALS and "sampling" in signals.takes(found.signal) and not gate.tries
        own = given_to(spec, given)
        # A rule for drawing fewer samples is of scores with these settings; others may be in force where a mismatch is ignored.
        other = any(key in own and as_text(own[key].value) != as_text(value) for key, value in depends.items())
        chosen |= {STOPPING: None if other else found.stopping} if draws or found.stopping else {}
        layer |= {f"{spec.name}.{key}": Given(value, source, CALIBRATED) for key, value in depends.items()}
        layer |= {f"{spec.name}.{key}": Given(value, source, CHOSEN) for key, value in chosen.items()}
    known = config.settings_of(scheme_of(model)[1].settings) if isinstance(model, str) else {}
    form = {key: value for key, value in found.form.items() if key in known and value != known[key].default}
    return layer | {f"{MODEL_SECTION}.{key}": Given(value, source, CALIBRATED) for key, value in form.items()}


def model_of(found: Calibration) -> str | None:
    """The main model where nobody named one; None where the file does not say, as where the gate listens to another."""
    gate = methods.spec(found.method).gate if found.method in methods.names() else None
    return None if gate and gate.speaker else found.model.name or None


def _meant(found: Calibration, specs: Sequence[MethodSpec], given: Settings) -> list[tuple[MethodSpec, GateSpec]]:
    """The method that it was made with, and those whose signal a user named so; where there are none, every one whose gate
    could have the signal. Raises InvalidSetting where there are none either."""
    said = {spec.name: one for spec in specs if (one := _signal_given(spec, given)) is not None}
    gated = [(spec, spec.gate) for spec in specs if spec.gate and found.fires == "above"]
    named = [
        (spec, gate)
        for spec, gate in gated
        if (said[spec.name].value == found.signal if spec.name in said else spec.name == found.method)
    ]
    known = found.signal in signals.SIGNALS
    if meant := named or [(spec, gate) for spec, gate in gated if spec.name not in said and gate.signal_key and known]:
        return meant
    has = "; ".join(f"{name} got {one.value!r} from {one.source}" for name, one in said.items())
    raise InvalidSetting(
        f"<--calibration>: got {found.source}, a threshold for the signal {found.signal!r}, which no gate of "
        f"{', '.join(one.name for one in specs)} takes ({has or 'none can measure it'}). "
        "Leave out what names another signal, or name another method with <--method NAME>."
    )


def _signal_given(spec: MethodSpec, given: Settings) -> Given | None:
    """The name of the signal that somebody gave for the method's gate; None where nobody did."""
    said = given_to(spec, given).get((spec.gate and spec.gate.signal_key) or "")
    name = "none" if said is None or said.value is None else str(signals.name_of(cast("Any", said.value))).strip()
    return said and said._replace(value=name)

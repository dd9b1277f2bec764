"""Where a calibration is refused, as made for another model or with other settings than those in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gnothi.calibration.file import Calibration
from gnothi.calibration.layer import WHOLE, depends_on
from gnothi.config import CHOSEN, Given, as_text
from gnothi.errors import InvalidSetting, OtherModel
from gnothi.methods.planned import PlannedMethod, name_of
from gnothi.methods.steps.gating import GateSpec
from gnothi.models.identity import Identity, identify
from gnothi.models.scheme import FORM
from gnothi.signals.stopping import KEY as STOPPING
from gnothi.signals.stopping import parsed


def check(
    calibration: Calibration, methods: Sequence[PlannedMethod], layer: Mapping[str, Given], model: Any, ignore_mismatch: bool
) -> list[str]:
    """What to tell of each method that has the calibration's ``layer`` of settings. ``model`` is the main one, by name or
    itself; ``ignore_mismatch``: also where the calibration was made for another model or with other settings.

    Raises OtherModel, or InvalidSetting where settings differ that scores depend on, or where another threshold was given."""
    summaries = []
    for method in methods:
        own = {key: setting for key in method.values if (setting := layer.get(f"{method.name}.{key}"))}
        if not own or (gate := method.spec.gate) is None:
            continue
        if not ignore_mismatch:
            check_model(calibration, identity_of(method.speaker(model)))
        for key, setting in own.items():
            if setting.layer == CHOSEN and method.values[key] != setting.value:
                got = f"{as_text(method.values[key])} (from {method.given[key].source})"
                raise InvalidSetting(
                    f"<--calibration>: {calibration.source} says {key} = {as_text(setting.value)}, got {got}. "
                    "Leave out one of the two."
                )
        if not ignore_mismatch:
            _check_settings(calibration, method.name, method.values, method.given)
        summaries.append(_summary_of(calibration, method, gate, own))
    return summaries


def fits(calibration: Calibration, gate: GateSpec) -> bool:
    """Whether it is for the gate's signal, and scores that depend on the same settings."""
    if gate.signal != calibration.signal or calibration.fires != "above":
        return False
    try:
        _check_settings(calibration, "", gate.values)
    except InvalidSetting:
        return False
    return True


def identity_of(model: Any) -> Identity:
    """Of a name, or of a model itself, of which nothing but its name is known."""
    return identify(model) if isinstance(model, str) else Identity(name_of(model))


def chosen_on(calibration: Calibration, dataset: str, fingerprint: str) -> str:
    """A warning where the threshold was chosen on questions of that data set, else nothing."""
    if not same_questions(calibration.dataset, calibration.data_fingerprint, dataset, fingerprint):
        return ""
    return (
        f"the threshold of {calibration.source} was chosen on questions of {dataset}, so it does better on them than on "
        "others. Evaluate on questions that it has not seen."
    )


def check_model(calibration: Calibration, model: Identity) -> None:
    """Raises OtherModel unless it was made for this one."""
    named = _named(calibration)
    if not calibration.model.name:
        raise OtherModel(
            f"{named} does not say of which model it is (made from {calibration.dataset}), got {model.name!r}. "
            "If it is this one, add <--ignore-mismatch>."
        )
    if not calibration.model.same(model):
        same_name = calibration.model.name == model.name
        got = f"another version of it (fingerprint {model.fingerprint})" if same_name else repr(model.name)
        raise OtherModel(
            f"{named} is of model {calibration.model.name!r}, got {got}. Thresholds do not carry over from one "
            "model to another: calibrate this one (gnothi calibrate), or add <--ignore-mismatch>."
        )


def check_computing(calibration: Calibration, precision: str | None, form: Mapping[str, str]) -> None:
    """Raises OtherModel where the model computes in another precision (``auto`` takes the calibration's), or where prompts are
    written otherwise than they were (``FORM``); what is not known of either is not compared."""
    of = f"{_named(calibration)} is of model {calibration.model.name!r}"
    if precision not in ("", "auto", None, calibration.precision) and calibration.precision:
        raise OtherModel(
            f"{of} in {calibration.precision}, got it in {precision}, which moves scores. Use "
            f"<--set model.dtype={calibration.precision}>, calibrate in {precision}, or add <--ignore-mismatch>."
        )
    for key in FORM:
        was, now = calibration.form.get(key), form.get(key)
        if was and now and was != now:
            raise OtherModel(
                f"{of} with {key} {was}, got it with {key} {now}, which moves scores. Use <--set model.{key}={was}>, "
                f"calibrate with {now}, or add <--ignore-mismatch>."
            )


def _named(calibration: Calibration) -> str:
    return "this calibration" if calibration.path is None else f"the calibration {calibration.path}"


def _summary_of(calibration: Calibration, method: PlannedMethod, gate: GateSpec, own: Mapping[str, Given]) -> str:
    """What the threshold rests on, as far as someone who uses it for the method has to know, and what else came with it."""
    in_the_sentence = {gate.signal_key, STOPPING, *(() if gate.tries else (gate.key,))}
    values = {key: method.values[key] for key, one in own.items() if key not in in_the_sentence and method.given[key] is one}
    new = [f"{key} = {as_text(value)}" for key, value in values.items() if value != method.spec.settings[key].default]
    setting = f" ({', '.join(new)})" if new else ""
    others = f", by the answers of {calibration.answers_of}" if calibration.answers_of not in ("", method.name) else ""
    failed = f" ({calibration.failures} more failed and had no part in it)" if calibration.failures else ""
    rule = parsed(text) if (text := method.values.get(STOPPING)) else None
    early = ", drawing samples until it is decided" if rule and rule.steps else ""
    early += ", drawing fewer samples where passages are compared" if rule and rule.leads else ""
    return (
        f"{method.name}: threshold {calibration.threshold:g} for {calibration.signal}{setting}{early}, calibrated on "
        f"{calibration.questions} questions of {calibration.dataset}{failed}{others}"
    )


def _check_settings(
    calibration: Calibration, method: str, got: Mapping[str, Any], given: Mapping[str, Given] = MappingProxyType({})
) -> None:
    """Raises InvalidSetting where they differ, or where the method has none of them: its scores are of something else then."""
    for key, before in depends_on(calibration).items():
        if as_text(got[key]) == as_text(before) if key in got else (key, before) == ("form", WHOLE):
            continue
        source = f" (from {given[key].source})" if key in given else ""
        has = f"got {as_text(got[key])}{source}" if key in got else f"and method {method} has no such setting"
        raise InvalidSetting(
            f"<--calibration>: {calibration.source} was made with {key} = {as_text(before)}, {has}: its threshold may "
            "mean something else. Use the same settings, calibrate anew, or add <--ignore-mismatch>."
        )


def same_questions(dataset: str, fingerprint: str, other: str, other_fingerprint: str) -> bool:
    """Whether two data sets share questions, by name whatever their kind, or by fingerprint whatever they are called; an empty
    fingerprint is not known."""
    return _whole(dataset) == _whole(other) or bool(fingerprint and fingerprint == other_fingerprint)


def _whole(dataset: str) -> str:
    """A data set without the kind that follows its name; a file by its full path."""
    path = Path(dataset)
    return str(path.resolve()) if path.is_file() else dataset.partition(":")[0]

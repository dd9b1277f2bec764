"""``--set probe=FOLDER``: a probe is used with the model, and under the settings, that it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnothi.calibration.apply import speaker_of
from gnothi.calibration.seen import same_questions
from gnothi.config import Given, Settings, as_text
from gnothi.errors import InvalidSetting, OtherModel


def check_probes(anyway: bool | None, model: str, methods: Sequence[str], settings: Settings) -> None:
    """Raise OtherModel, or InvalidSetting for settings that scores depend on, where a method's probe does not fit; ``anyway``
    lets it pass (None: the command cannot). Raises InvalidInput for a folder that holds no probe."""
    from gnothi.methods import settings_of
    from gnothi.models.identity import Identity, identify
    from gnothi.signals.probe_folder import COMMAND, read_header

    hint = "" if anyway is None else ", or add --anyway"
    for name, (spec, given) in _probes(methods, settings).items():
        about = read_header(spec)
        if anyway:
            continue
        own, got = Identity(**about["model"]), identify(speaker_of(name, model, settings))
        if not own.same(got):
            which = f"another version of it (fingerprint {got.fingerprint})" if own.name == got.name else repr(got.name)
            raise OtherModel(
                f"setting 'probe': {spec} is of model {own.name!r}, got {which}. A probe reads the states of one model and "
                f"tells its mistakes: train one for this model with `{COMMAND}`{hint}."
            )
        values = {key: one.default for key, one in settings_of(name).items()} | {key: one.value for key, one in given.items()}
        _check_settings(spec, about["settings"], values, hint)


def learnt_from(dataset: str, methods: Sequence[str], settings: Settings, fingerprint: str = "") -> list[str]:
    """The probes of the methods that were trained on questions of that data set, whatever their kind, or on questions of that
    fingerprint, whatever their file is called: what they say of these is no measure of what they say of others."""
    specs = dict.fromkeys(spec for spec, _ in _probes(methods, settings).values())
    return [spec for spec in specs if learnt(spec, dataset, fingerprint)]


def learnt(spec: str, dataset: str, fingerprint: str) -> bool:
    """Whether this probe did. Raises InvalidInput for a folder that holds none."""
    from gnothi.signals.probe_folder import read_header

    data = read_header(spec)["data"]
    return same_questions(data["name"], data.get("fingerprint", ""), dataset, fingerprint)


def calibrating_warning(spec: str, dataset: str) -> str:
    """What to say where a threshold is chosen on the questions that the probe learnt from."""
    return (
        f"warning: the probe {spec} learnt from questions of {dataset}, so it does better on them than on others, and no "
        "guarantee holds. Calibrate on questions that it has not seen."
    )


def _probes(methods: Sequence[str], settings: Settings) -> dict[str, tuple[str, dict[str, Given]]]:
    """Of methods with a probe, what names it and all that was given to them."""
    from gnothi.methods.given import method_settings, named_resources
    from gnothi.signals.probe import Probe

    found = {}
    for name, given in method_settings(methods, settings).items():
        protocol, spec = named_resources(name, given).get("probe", (None, ""))
        if protocol is Probe:
            found[name] = spec, given
    return found


def _check_settings(spec: str, wanted: Mapping[str, Any], values: Mapping[str, Any], hint: str) -> None:
    for key, value in wanted.items():
        if key in values and as_text(values[key]) != as_text(value):
            raise InvalidSetting(
                f"setting 'probe': {spec} was made with {key} = {as_text(value)}, got {as_text(values[key])}: it tells "
                f"mistakes that are made otherwise. Use the same setting, or train a probe with it{hint}."
            )

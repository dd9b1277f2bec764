"""``--set probe=FOLDER``: a probe is used with the model, and under the settings, that it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnothi.config import Settings, as_text
from gnothi.errors import InvalidSetting, OtherModel

OTHER_SPEAKERS = {"slimplm": "proxy", "iekr": "reader"}
"""The setting that names the model which a method's gate listens to, where it is not the main one."""


def check_probes(anyway: bool | None, model: str, methods: Sequence[str], settings: Settings) -> None:
    """Raise OtherModel, or InvalidSetting for settings that scores depend on, where a method's probe does not fit; ``anyway``
    lets it pass (None: the command cannot). Raises InvalidInput for a folder that holds no probe."""
    from gnothi.cli.resources import method_settings, named_resources
    from gnothi.methods import settings_of
    from gnothi.models.identity import Identity, identify
    from gnothi.signals.probe import Probe
    from gnothi.signals.probe_folder import COMMAND, read_header

    for name, given in method_settings(methods, settings).items():
        named = named_resources(name, given)
        protocol, spec = named.get("probe", (None, ""))
        if protocol is not Probe:
            continue
        about = read_header(spec)
        if anyway:
            continue
        hint = "" if anyway is None else ", or add --anyway"
        _, listened = named.get(OTHER_SPEAKERS.get(name, ""), (None, model))
        own, got = Identity(**about["model"]), identify(listened)
        if not own.same(got):
            which = f"another version of it (fingerprint {got.fingerprint})" if own.name == got.name else repr(got.name)
            raise OtherModel(
                f"setting 'probe': {spec} is of model {own.name!r}, got {which}. A probe reads the states of one model and "
                f"tells its mistakes: train one for this model with `{COMMAND}`{hint}."
            )
        values = {key: one.default for key, one in settings_of(name).items()} | {key: one.value for key, one in given.items()}
        _check_settings(spec, about["settings"], values, hint)


def _check_settings(spec: str, wanted: Mapping[str, Any], values: Mapping[str, Any], hint: str) -> None:
    for key, value in wanted.items():
        if key in values and as_text(values[key]) != as_text(value):
            raise InvalidSetting(
                f"setting 'probe': {spec} was made with {key} = {as_text(value)}, got {as_text(values[key])}: it tells "
                f"mistakes that are made otherwise. Use the same setting, or train a probe with it{hint}."
            )

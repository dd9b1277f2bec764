"""A probe is used with the model, and under the settings, that it was made with; whatever else is learnt of what a model
answered, with this model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnothi.calibration.mismatch import identity_of, same_questions
from gnothi.config import as_text
from gnothi.errors import MALFORMED, InvalidInput, InvalidSetting, OtherModel
from gnothi.methods.planned import PlannedMethod
from gnothi.models.identity import Identity
from gnothi.signals.probe import Probe
from gnothi.signals.probe_folder import COMMAND, read_header
from gnothi.signals.registry import PROBE


def with_probe(method: PlannedMethod, model: Any, ignore_mismatch: bool | None, tell: Callable[[str], None]) -> PlannedMethod:
    """The method with the settings that its probe was made with, where nobody gave others.

    Raises OtherModel, or InvalidSetting for other settings that scores depend on, where the probe does not fit;
    ``ignore_mismatch`` lets it pass (None: the caller cannot). Raises InvalidInput for a folder that holds no probe."""
    if (spec := _probe(method)) is None:
        return method
    about = read_header(spec)
    if ignore_mismatch:
        return method
    hint = "" if ignore_mismatch is None else ", or add <--ignore-mismatch>"
    try:
        own, wanted = Identity(about["model"]["name"], about["model"].get("fingerprint", "")), about["settings"]
    except KeyError as error:
        raise _unlike(spec, error) from None
    got = identity_of(method.speaker(model))
    if not own.same(got):
        which = f"another version of it (fingerprint {got.fingerprint})" if own.name == got.name else repr(got.name)
        raise OtherModel(
            f"setting {PROBE!r}: {spec} is of model {own.name!r}, got {which}. A probe reads the states of one model and "
            f"tells its mistakes: train one for this model with `{COMMAND}`{hint}."
        )
    ours = {key: one for key, one in wanted.items() if key not in method.given and one != method.values.get(key, one)}
    if ours:
        tell(
            f"{method.name}: {', '.join(f'{key} = {as_text(one)}' for key, one in ours.items())}, as the probe {spec} was made"
        )
    _check_settings(spec, wanted, {**method.values, **ours}, hint)
    return method.changed(ours, f"the probe {spec}") if ours else method


def check_learnt(method: PlannedMethod, model: Any, ignore_mismatch: bool | None) -> None:
    """Raises OtherModel where what the method goes by (a learnt gate, questions that a model knew, a classifier) was learnt of
    the answers of another model; what does not say of which is not compared."""
    from gnothi.filtering import complexity, knowledge, learned

    for file, command in ((part.FILE, part.COMMAND) for part in (learned, knowledge, complexity)):
        for key, (_, spec) in method.named.items():
            own = _model_in(Path(spec, file)) if isinstance(spec, str) else None
            if own is None or ignore_mismatch or own.same(got := identity_of(model)):
                continue
            hint = "" if ignore_mismatch is None else ", or add <--ignore-mismatch>"
            raise OtherModel(
                f"setting {key!r}: {spec} was learnt from the answers of the model {own.name!r}, got {got.name!r}, which knows "
                f"other things. Make one for this model with `{command}`{hint}."
            )


def _model_in(file: Path) -> Identity | None:
    """The model that the file names. None where it names none, or cannot be read: whoever opens it says so."""
    with suppress(OSError, *MALFORMED):
        model = json.loads(file.read_bytes())["model"]
        return Identity(str(model["name"]), str(model["fingerprint"]))
    return None


def learnt_from(methods: Sequence[PlannedMethod], dataset: str, fingerprint: str = "") -> list[str]:
    """The probes of the methods that were trained on questions of that data set, whatever their kind, or on questions of that
    fingerprint, whatever their file is called: what they say of these is no measure of what they say of others."""
    specs = dict.fromkeys(spec for method in methods if (spec := _probe(method)))
    return [spec for spec in specs if learnt(spec, dataset, fingerprint)]


def learnt(spec: str, dataset: str, fingerprint: str) -> bool:
    """Whether this probe did. Raises InvalidInput for a folder that holds none."""
    data = read_header(spec).get("data", {})
    if "name" not in data:
        raise _unlike(spec, KeyError("data.name"))
    return same_questions(data["name"], data.get("fingerprint", ""), dataset, fingerprint)


def _unlike(spec: str, missing: KeyError) -> InvalidInput:
    return InvalidInput(f"{spec}: probe.json lacks {missing}. Expected a folder made by `{COMMAND}`.")


def evaluating_warning(spec: str, dataset: str) -> str:
    return (
        f"the probe {spec} learnt from questions of {dataset}, so it does better on them than on others. "
        "Evaluate on questions that it has not seen."
    )


def calibrating_warning(spec: str, dataset: str) -> str:
    """What to say where a threshold is chosen on the questions that the probe learnt from."""
    return (
        f"the probe {spec} learnt from questions of {dataset}, so it does better on them than on others, and no "
        "guarantee holds. Calibrate on questions that it has not seen."
    )


def _probe(method: PlannedMethod) -> str | None:
    """What names the method's probe; None where it has none, or was given the object."""
    protocol, spec = method.named.get(PROBE, (None, None))
    return spec if protocol is Probe and isinstance(spec, str) else None


def _check_settings(spec: str, wanted: Mapping[str, Any], values: Mapping[str, Any], hint: str) -> None:
    for key, value in wanted.items():
        if key in values and as_text(values[key]) != as_text(value):
            raise InvalidSetting(
                f"setting {PROBE!r}: {spec} was made with {key} = {as_text(value)}, got {as_text(values[key])}: it knows "
                f"only mistakes made with its own setting. Use that setting, or train a probe with the new one{hint}."
            )

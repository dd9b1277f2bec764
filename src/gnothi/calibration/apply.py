"""``--calibration FILE``: the threshold of a calibration file in place of a method's own, if it is of this model and signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.calibration.seen import same_questions
from gnothi.config import Given, Settings, as_text
from gnothi.errors import InvalidSetting

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration

AGREEMENT = "alpha"
"""How KEQA calls the share of tries that must agree: it retrieves where the disagreement is above 1 minus it."""
_ASSESSED = {AGREEMENT, "assess", "tries"}
_FORMS = {"simple": "whole replies", "multi_hop": "single sentences (form = multi_hop)", "quizzes": "single quizzes"}


def calibration(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--calibration`` and ``--anyway``; the command gets ``calibration`` and ``anyway`` and hands them to
    ``with_calibration`` and ``check_probes``."""
    add_file = click.option(
        "--calibration",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Use the threshold of this file, written by `gnothi calibrate`.",
    )
    add_anyway = click.option(
        "--anyway",
        "anyway",
        is_flag=True,
        help="Use a calibration or a probe although it was made for another model or with other settings.",
    )
    return add_file(add_anyway(command))


@dataclass(frozen=True, slots=True)
class Gated:
    """A method's gate: its signal, the key of its threshold, and the settings that scores depend on."""

    signal: str | None
    key: str
    settings: Mapping[str, Any]

    def at(self, threshold: float) -> dict[str, Any]:
        """The settings that make it retrieve above ``threshold``, which may be infinite."""
        if self.key != AGREEMENT:
            return {self.key: threshold}
        if threshold < 0:
            return {"assess": False}
        from gnothi.signals.grouping import needed

        # Scores are kept to four digits, and shares of tries lie further apart.
        tries = self.settings["tries"]
        return {self.key: needed(1.0 - min(threshold, 1.0) - 1e-4, tries) / tries}

    def measured(self) -> dict[str, Any]:
        """Settings that scores are to be collected with, beside a gate that never retrieves."""
        return {"schedule": "at_once"} if self.key == AGREEMENT else {}


def gate_of(method: str, settings: Settings) -> Gated | None:
    """The gate of a method under these settings; None for a method without one. Raises UnknownName or InvalidSetting."""
    from gnothi import config
    from gnothi import methods as registry
    from gnothi.methods.given import method_settings

    known = registry.settings_of(method)
    given = config.check(method_settings([method], settings)[method], known, f"method {method}")
    values = {key: setting.default for key, setting in known.items()} | given
    gating = registry.gating_of(method)
    if gating is None:
        return _agreement(values)
    from gnothi.signals import registry as signals

    # A gate may also be told to fire always or never, by no signal.
    signal = values[gating.signal] if values[gating.signal] in signals.names() else None
    return Gated(signal, gating.threshold, scores_depend_on(values, signal))


def speaker_of(method: str, model: str, settings: Settings) -> str:
    """The spec of the model that the method's gate listens to: ``model``, unless a setting names another. Raises as
    ``gate_of``."""
    from gnothi import methods as registry
    from gnothi.methods.given import method_settings, named_resources

    gating = registry.gating_of(method)
    if gating is None or gating.speaker is None:
        return model
    _, named = named_resources(method, method_settings([method], settings)[method]).get(gating.speaker, (None, model))
    return named


def _agreement(values: Mapping[str, Any]) -> Gated | None:
    """KEQA's gate: the disagreement of tries. None for a method without one, or where every quiz is looked up."""
    if not values.keys() >= _ASSESSED or not values["assess"]:
        return None
    return Gated("consistency", AGREEMENT, scores_depend_on(values, "consistency"))


def scores_depend_on(settings: Mapping[str, Any], signal: str | None) -> dict[str, Any]:
    """Those of a method's settings that the scores of ``signal``, and the answers beside them, depend on: how it replies, and
    what the signal has a use for."""
    from gnothi.methods.steps.settings import READ_AS
    from gnothi.signals import registry

    if settings.keys() >= _ASSESSED:
        return {key: settings[key] for key in ("tries", "temperature", "top_p", "decompose", "judge")}
    wanted = {"max_tokens", "form", "reason"}
    if signal in registry.names():
        wanted |= {key for part in READ_AS.keys() & registry.takes(signal) for key in READ_AS[part]}
    else:  # what compose's gates by the question alone have learnt
        wanted |= {"knowledge", "neighbours", "classifier"}
    return {key: value for key, value in settings.items() if key in wanted}


def with_calibration(
    path: Path | None, anyway: bool, model: str, methods: Sequence[str], settings: Settings, say: Callable[[str], None]
) -> Settings:
    """``settings`` with the threshold of the file for every one of ``methods`` that uses its signal; ``say`` is told which.

    Raises OtherModel, InvalidInput, or InvalidSetting where no method uses the signal, where settings differ that scores depend
    on, or where a threshold was given, too."""
    if path is None:
        return settings
    from gnothi.calibration.file import read
    from gnothi.methods import gating_of
    from gnothi.models.identity import identify

    found = read(path)
    gates = {name: gate for name in methods if (gate := gate_of(name, settings))}
    users = {name: gate for name, gate in gates.items() if gate.signal == found.signal and found.fires == "above"}
    if not users:
        has = (
            ", ".join(f"{name} has signal {gate.signal or 'none'}" for name, gate in gates.items())
            or "they have no gate of a signal"
        )
        keys = dict.fromkeys(f"--set {gating.signal}=..." for name in gates if (gating := gating_of(name)))
        choose = f"Choose it with {' or '.join(keys)}, or calibrate" if keys else "Calibrate"
        raise InvalidSetting(
            f"--calibration: got {path}, a threshold for the signal {found.signal!r}, but no method of "
            f"{', '.join(methods)} uses it ({has}). {choose} with --method NAME."
        )
    for name in () if anyway else users:
        found.check_model(identify(speaker_of(name, model, settings)), path)
    changed = dict(settings.given)
    for name, gate in users.items():
        for key in (gate.key, f"{name}.{gate.key}"):
            if key in settings.given and settings.given[key].layer:  # not from a file, which a flag is above
                raise InvalidSetting(
                    f"--calibration: got a threshold from {path} and another one from {settings.given[key].source}, "
                    "expected one."
                )
        if not anyway:
            _check_settings(path, found.settings, name, gate.settings)
        set_to = gate.at(found.threshold)
        changed |= {f"{name}.{key}": Given(value, f"--calibration {path}") for key, value in set_to.items()}
        told = f" ({', '.join(f'{key} = {as_text(value)}' for key, value in set_to.items())})" if gate.key == AGREEMENT else ""
        say(f"{name}: threshold {found.threshold:g} for {found.signal}{told}, {_on_what(found, name)}")
    return Settings(changed)


def chosen_on(path: Path, dataset: str, fingerprint: str) -> str:
    """A warning where the threshold of the file was chosen on questions of that data set, else nothing. Raises InvalidInput."""
    from gnothi.calibration.file import read

    found = read(path)
    if not same_questions(found.dataset, found.data_fingerprint, dataset, fingerprint):
        return ""
    return (
        f"warning: the threshold of {path} was chosen on questions of {dataset}, so it does better on them than on others. "
        "Evaluate on questions that it has not seen."
    )


def _on_what(found: Calibration, method: str) -> str:
    """What the threshold rests on, as far as someone who uses it for the method has to know."""
    others = f", by the answers of {found.answers_of}" if found.answers_of not in ("", method) else ""
    failed = f" ({found.failures} more failed and had no part in it)" if found.failures else ""
    return f"calibrated on {found.questions} questions of {found.dataset}{failed}{others}"


def _check_settings(path: Path, made_with: Mapping[str, Any], method: str, got: Mapping[str, Any]) -> None:
    """Raises InvalidSetting where they differ, or where the scores are of other parts of a reply."""
    made_of, of = _form(made_with), _form(got)
    if made_of != of:
        same = f"--set form={made_of}" if "form" in got and made_of in ("simple", "multi_hop") else "the same method"
        raise InvalidSetting(
            f"--calibration: {path} is for scores of {_FORMS.get(made_of, made_of)}, got method {method} with scores of "
            f"{_FORMS.get(of, of)}: its threshold may mean something else. Use {same}, calibrate anew, or add --anyway."
        )
    for key, value in got.items():
        if key in made_with and not _same(value, made_with[key]):
            raise InvalidSetting(
                f"--calibration: {path} was made with {key} = {as_text(made_with[key])}, got {as_text(value)}: its threshold "
                "may mean something else. Use the same settings, calibrate anew, or add --anyway."
            )


def _form(settings: Mapping[str, Any]) -> str:
    """What is scored: as the setting says, the quizzes of a method that tries them several times, else a whole reply."""
    return str(settings.get("form", "quizzes" if "tries" in settings else "simple"))


def _same(one: Any, other: Any) -> bool:
    """As the file writes them: "none" for None, lists for tuples."""
    return as_text(one) == as_text(tuple(other) if isinstance(other, list) else other)

"""What a user gave, sorted by method: each one's settings, and the further models and indexes that they name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gnothi import config
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UnknownName

MODEL_SECTION = "model"
INDEX_SECTION = "index"


def method_settings(names: Sequence[str], settings: Settings) -> dict[str, dict[str, Given]]:
    """What was given to each method: plain keys that it has, and those under its name (``seakr.threshold``), which win over
    plain ones of the same layer or one below.

    A plain key must be a setting of at least one of ``names``. Sections of methods that do not take part are left alone, so
    that one file serves many runs. Raises UnknownName (for names and settings) and InvalidSetting.
    """
    from gnothi import methods

    known = {name: methods.settings_of(name) for name in names}
    sections = {MODEL_SECTION, INDEX_SECTION, *methods.names()}
    plain = settings.plain(sections)
    union = {key: setting for one in known.values() for key, setting in one.items()}
    _check_plain(plain, known)
    config.check(plain, union, " and ".join(names) or "no method")
    chosen = {name: _stronger(plain, settings.section(name), one) for name, one in known.items()}
    for name, given in chosen.items():
        config.check(given, known[name], name)
        methods.check(name, given)
    return chosen


_FLAGS = frozenset("method model index graph seed limit format out calibration concurrency workers".split())


def _check_plain(plain: Mapping[str, Given], known: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InvalidSetting for a flag given as a setting, UnknownName for a section that is none."""
    union = {key for one in known.values() for key in one}
    for key, given in plain.items():
        if key in union:
            continue
        if key in _FLAGS:
            raise InvalidSetting(
                f"setting {key!r} (from {given.source}): there is none of that name. It is a flag of commands: --{key}."
            )
        if "." in key:
            everything = [f"{name}.{one}" for name, settings in known.items() for one in settings]
            raise UnknownName(f"setting of {' and '.join(known)} (from {given.source})", key, [*union, *everything])


def _stronger(plain: Mapping[str, Given], own: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """A method's settings: its own, and the plain ones that it knows and that are not given closer to it."""
    kept = {key: one for key, one in plain.items() if key in known and (key not in own or one.layer > own[key].layer)}
    return {**own, **kept}


def named_resources(name: str, given: Mapping[str, Given]) -> dict[str, tuple[type, str]]:
    """The method's fields for further models and indexes that were given, each with its protocol and the spec."""
    from gnothi import methods

    known, wanted = methods.settings_of(name), methods.optional_resources(name)
    specs = config.check({key: value for key, value in given.items() if key in wanted}, known, f"method {name}")
    return {key: (wanted[key], spec) for key, spec in specs.items() if spec is not None}

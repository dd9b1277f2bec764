"""A method before it is made: its settings, resolved once, and the further models and indexes that they name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnothi import config, methods
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.methods.steps.gating import Gating
from gnothi.models.of_function import as_model
from gnothi.protocols import LanguageModel, Method, Retriever
from gnothi.retrieval.given import as_retriever

MODEL_SECTION = "model"
INDEX_SECTION = "index"
SERVER_SECTIONS = ("server", "setups")
"""What `gnothi serve` alone reads: one file may serve other commands, too."""
_NO_SETTINGS = frozenset("method model index graph seed limit format out calibration concurrency workers on gpus".split())
"""What commands and functions take beside settings: said where one is given as a setting."""


@dataclass(frozen=True, slots=True)
class PlannedMethod:
    """``values`` holds every setting with its value; ``given`` those that somebody gave, with where; ``named`` is what fills
    its fields for further models, indexes and the like: protocol and name, or the object itself. ``variant`` is its label in
    a study."""

    name: str
    values: Mapping[str, Any]
    given: Mapping[str, Given]
    named: Mapping[str, tuple[type, Any]]
    variant: str = ""

    @property
    def gating(self) -> Gating | None:
        return methods.gating_of(self.name)

    @property
    def never_retrieves(self) -> bool:
        """Whether its gate was told never to fire."""
        return self.gating is not None and self.values[self.gating.threshold] == float("inf")

    @property
    def models(self) -> list[Any]:
        """The further models that it asks."""
        return [given for protocol, given in self.named.values() if protocol is LanguageModel]

    def speaker(self, model: Any) -> Any:
        """The model that its gate listens to: ``model``, unless a setting names another."""
        _, named = self.named.get(self.gating.speaker or "", (None, model)) if self.gating else (None, model)
        return named

    def changed(self, values: Mapping[str, Any], source: str) -> PlannedMethod:
        """With other values for some settings, which ``source`` gave."""
        given = {key: Given(value, source) for key, value in values.items()}
        typed = config.check(given, methods.settings_of(self.name), f"method {self.name}")
        return replace(self, values={**self.values, **typed}, given={**self.given, **given})

    def made(self, resources: Mapping[str, object]) -> Method:
        """Ready to answer; ``resources`` fill its fields. Raises InvalidSetting or MissingCapability."""
        plain = {key: value for key, value in self.given.items() if key not in methods.optional_resources(self.name)}
        return methods.create(self.name, resources, plain)


def plan_methods(names: Sequence[str], settings: Settings) -> tuple[PlannedMethod, ...]:
    """The methods with what was given to each: plain keys that it has, and those under its name (``seakr.threshold``), which
    win over plain ones of the same layer or one below.

    A plain key must be a setting of at least one of ``names``. Sections of methods that do not take part are left alone, so
    that one file serves many runs. Raises UnknownName (for names and settings) and InvalidSetting.
    """
    known = {name: methods.settings_of(name) for name in names}
    plain = settings.plain({MODEL_SECTION, INDEX_SECTION, *SERVER_SECTIONS, *methods.names()})
    union = {key: setting for one in known.values() for key, setting in one.items()}
    _check_plain(plain, known)
    further = {key for name in names for key in methods.optional_resources(name)}
    texts = {key: one for key, one in plain.items() if key not in further or isinstance(one.value, str | None)}
    config.check(texts, union, " and ".join(names) or "no method")
    return tuple(_planned(name, _stronger(plain, settings.section(name), known[name]), known[name]) for name in known)


def _planned(name: str, given: dict[str, Given], known: Mapping[str, config.Setting]) -> PlannedMethod:
    wanted = methods.optional_resources(name)
    objects = {
        key: _adapted(one.value, wanted[key], key)
        for key, one in given.items()
        if key in wanted and not isinstance(one.value, str | None)
    }
    for key, value in objects.items():
        check_fits(value, wanted[key], key)
    given |= {key: given[key]._replace(value=name_of(value)) for key, value in objects.items()}
    values = config.check(given, known, name)
    methods.check(name, given)
    named = {
        key: (wanted[key], objects.get(key, value)) for key, value in values.items() if key in wanted and value is not None
    }
    return PlannedMethod(name, {key: one.default for key, one in known.items()} | values, given, named)


def _adapted(value: Any, protocol: type, key: str) -> Any:
    """A function as a model or an index, where the field takes one."""
    return as_model(value) if protocol is LanguageModel else as_retriever(value, key) if protocol is Retriever else value


def name_of(source: Any) -> str:
    """What a model, an index or the like is called in records: its name, or what named it."""
    return source if isinstance(source, str) else str(getattr(source, "name", type(source).__name__))


def check_fits(value: object, protocol: type, key: str) -> None:
    """Raise InvalidSetting for an object that is not of the protocol."""
    if isinstance(value, type) or not isinstance(value, protocol):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"an object of the class {type(value).__name__}"
        lacking = sorted(name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name))
        lacks = f" It lacks {', '.join(lacking)}." if lacking and not isinstance(value, type) else ""
        expected = "a name, a function of one text," if protocol is LanguageModel else "a name"
        raise InvalidSetting(
            f"{key}: got {what}, expected {expected} or an object that does what {protocol.__name__} says.{lacks}"
        )


def _check_plain(plain: Mapping[str, Given], known: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InvalidSetting for a flag given as a setting, UnknownName for a section that is none."""
    union = {key for one in known.values() for key in one}
    for key, given in plain.items():
        if key in union:
            continue
        if key in _NO_SETTINGS:
            raise InvalidSetting(
                f"setting {key!r} (from {given.source}): there is none of that name. It is a parameter of its own: <--{key}>."
            )
        if "." in key:
            everything = [f"{name}.{one}" for name, settings in known.items() for one in settings]
            raise UnknownName(f"setting of {' and '.join(known)} (from {given.source})", key, [*union, *everything])


def _stronger(plain: Mapping[str, Given], own: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """A method's settings: its own, and the plain ones that it knows and that are not given closer to it."""
    kept = {key: one for key, one in plain.items() if key in known and (key not in own or one.layer > own[key].layer)}
    return {**own, **kept}

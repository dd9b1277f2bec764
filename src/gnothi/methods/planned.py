"""A method before it is made: its settings, resolved once, and the further models and indexes that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnothi import config, methods
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.methods.steps.gating import AnyGating
from gnothi.methods.steps.settings import SECTION, ModelDefaults, measured_by, settings_of
from gnothi.models.of_function import as_model
from gnothi.protocols import LanguageModel, Method, Retriever
from gnothi.retrieval.given import as_retriever
from gnothi.signals import registry as signals

MODEL_SECTION = "model"
INDEX_SECTION = "index"
SERVER_SECTIONS = ("server", "setups")
"""What `gnothi serve` alone reads: one file may serve other commands, too."""
_OF_SIGNALS = f"{SECTION}."
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
    def gating(self) -> AnyGating | None:
        return methods.gating_of(self.name)

    @property
    def never_retrieves(self) -> bool:
        """Whether its gate was told never to fire."""
        return self.gating is not None and self.values[self.gating.threshold] == float("inf")

    @property
    def always_retrieves(self) -> bool:
        """Whether its gate was told to fire always."""
        return self.gating is not None and self.gating.open is not None and bool(self.values[self.gating.open])

    @property
    def models(self) -> list[Any]:
        """The further models that it asks."""
        return [given for protocol, given in self.named.values() if protocol is LanguageModel]

    def speaker(self, model: Any) -> Any:
        """The model that its gate listens to: ``model``, unless a setting names another."""
        _, named = self.named.get(self.gating.speaker or "", (None, model)) if self.gating else (None, model)
        return named

    def changed(self, values: Mapping[str, Any], source: str) -> PlannedMethod:
        """With other (typed) values for some settings, which ``source`` gave."""
        given = {key: Given(value, source) for key, value in values.items()}
        return replace(self, values={**self.values, **values}, given={**self.given, **given})

    def with_model(self, model: Any) -> PlannedMethod:
        """With the defaults that the method itself has for that main model."""
        own: ModelDefaults | None = getattr(methods.find(self.name), "defaults_for", None)
        if own is None or model != own.model or {*own.values, *own.others} & self.given.keys():
            return self
        wanted = methods.optional_resources(self.name)
        named = {key: (wanted[key], value) for key, value in own.values.items() if key in wanted}
        return replace(self.changed(own.values, f"the default for {model}"), named={**self.named, **named})

    def made(self, resources: Mapping[str, object]) -> Method:
        """Ready to answer; ``resources`` fill its fields. Raises InvalidSetting or MissingCapability."""
        optional = methods.optional_resources(self.name)
        return methods.make(self.name, resources, {key: value for key, value in self.values.items() if key not in optional})


def plan_methods(names: Sequence[str], settings: Settings) -> tuple[PlannedMethod, ...]:
    """The methods with what was given to each: plain keys that it has, and those under its name (``seakr.threshold``), which
    win over plain ones of the same layer or one below. Text becomes typed values here, and nowhere behind it.

    A plain key must be a setting of at least one of ``names``, or else of signals: ``samples`` is ``signal.samples``. That
    must be a setting of a signal that one of them measures. What a file or the environment says, which serve many commands,
    may also be for other methods and signals. Raises UnknownName (for names and settings) and InvalidSetting.
    """
    check_sections(settings, names)
    plain = settings.plain({MODEL_SECTION, INDEX_SECTION, *SERVER_SECTIONS, *methods.names()})
    plain = _qualified(plain, {key for name in names for key in methods.settings_of(name)})
    check_keys(plain, names)
    planned = tuple(_planned(name, plain, settings.section(name)) for name in dict.fromkeys(names))
    for key, one in plain.items():
        if not one.shared and all(
            key not in method.given and not _superseded(method.name, one, method.given) for method in planned
        ):
            _refuse_unmeasured(key, one, planned)
    return planned


def _planned(name: str, plain: Mapping[str, Given], own: Mapping[str, Given]) -> PlannedMethod:
    known = methods.settings_of(name)
    given = _stronger(plain, _qualified(own, known), known)
    wanted = methods.optional_resources(name)
    objects = {
        key: _adapted(one.value, wanted[key], key)
        for key, one in given.items()
        if key in wanted and not isinstance(one.value, str | None)
    }
    for key, value in objects.items():
        check_fits(value, wanted[key], key)
    given |= {key: given[key]._replace(value=name_of(value)) for key, value in objects.items()}
    of_signals = {key: one for key, one in given.items() if key.startswith(_OF_SIGNALS)}
    values = config.check({key: one for key, one in given.items() if key not in of_signals}, known, f"method {name}")
    has = settings_of_signals(name, values)
    for key, one in of_signals.items():
        if key in has:
            values |= config.check({key: one}, known, f"method {name}")
        else:
            del given[key]
            if key in own and not _superseded(name, one, given):
                _refuse_unmeasured(key, one, [PlannedMethod(name, values, given, {})])
    methods.check(name, values)
    named = {
        key: (wanted[key], objects.get(key, value)) for key, value in values.items() if key in wanted and value is not None
    }
    defaults = {key: one.default for key, one in known.items() if key in has or not key.startswith(_OF_SIGNALS)}
    return PlannedMethod(name, defaults | values, given, named)


def settings_of_signals(name: str, values: Mapping[str, Any]) -> set[str]:
    """The keys of the settings of all signals that the method measures with these values."""
    with_defaults = {key: one.default for key, one in methods.settings_of(name).items()} | dict(values)
    return {key for signal in measured_by(methods.find(name), with_defaults) for key in settings_of(signal)}


def takes(name: str, settings: Settings) -> set[str]:
    """The keys of the settings that count for the method: not those of signals that it does not measure."""
    given = _stronger(settings.given, settings.section(name), known := methods.settings_of(name))
    has = settings_of_signals(name, {key: one.value for key, one in given.items()})
    return {key for key in known if key in has or not key.startswith(_OF_SIGNALS)}


def _superseded(name: str, one: Given, given: Mapping[str, Given]) -> bool:
    """Whether the signal was named nearer to the command than its setting, as where a run is repeated with another signal."""
    gating = methods.gating_of(name)
    named = (given.get(key) for key in (SECTION, gating.signal if gating else None) if key)
    return any(other.layer > one.layer for other in named if other)


def _refuse_unmeasured(key: str, given: Given, planned: Sequence[PlannedMethod]) -> None:
    """Raise InvalidSetting for a setting that none of the signals has that the methods measure."""
    told = []
    for method in planned:
        measured = measured_by(methods.find(method.name), method.values) or ["perplexity"]
        has = sorted(settings_of_signals(method.name, method.values))
        told.append(f"{method.name} measures {' and '.join(measured)}, with the settings: {', '.join(has) or 'none'}")
    source = f" (from {given.source})" if given.source else ""
    having = [name for name in signals.names() if key in settings_of(name)]
    raise InvalidSetting(
        f"setting {key!r}{source}: no signal that is measured has it ({'; '.join(told)}). Name a signal that has it "
        f"({', '.join(having)}), or leave it out."
    )


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


def check_keys(plain: Mapping[str, Given], names: Sequence[str], further: Collection[str] = ()) -> None:
    """Raise InvalidSetting for a flag given as a setting, UnknownName for a key that none of the methods has, nor ``further``
    lists."""
    known = {name: methods.settings_of(name) for name in names}
    union = {*further, *(key for one in known.values() for key in one)}
    for key, given in plain.items():
        if key in union or (given.shared and _of_any(key)):
            continue
        if key in _NO_SETTINGS:
            raise InvalidSetting(
                f"setting {key!r} (from {given.source}): there is none of that name. It is a parameter of its own: <--{key}>."
            )
        if f"{_OF_SIGNALS}{key}" in union:
            raise InvalidSetting(
                f"setting {key!r} (from {given.source}): it is one of signals. Give it as <--set {_OF_SIGNALS}{key}=...>."
            )
        valid = [one for one in union if one.startswith(_OF_SIGNALS)] if key.startswith(_OF_SIGNALS) else [*union]
        if "." in key and not key.startswith(_OF_SIGNALS):
            valid += [f"{name}.{one}" for name, settings in known.items() for one in settings]
        raise UnknownName(f"setting of {' and '.join(known) or 'no method'} (from {given.source})", key, valid)


def _of_any(key: str) -> bool:
    """Whether any method at all has the setting, or one of signals of that name."""
    return any({key, f"{_OF_SIGNALS}{key}"} & methods.settings_of(name).keys() for name in methods.names())


def check_sections(settings: Settings, names: Iterable[str]) -> None:
    """Raise InvalidSetting for what the command itself was given for a method that does not take part, or for a server."""
    taking = list(dict.fromkeys(names))
    others = {*methods.names(), *SERVER_SECTIONS} - {*taking}
    for key, given in settings.given.items():
        section, dot, _ = key.partition(".")
        if given.shared or given.layer > 2 or not dot or section not in others:
            continue
        alone = f"methods: {', '.join(taking) or 'none'}"
        why = "`gnothi serve` alone has it" if section in SERVER_SECTIONS else alone
        raise InvalidSetting(f"setting {key!r} (from {given.source}): it has no use here ({why}). Leave it out.")


def _qualified(given: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """With ``signal.`` before the keys that only signals have."""
    names = {key: full for key in given if key not in known and (full := f"{_OF_SIGNALS}{key}") in known}
    return {names[key]: given[key] for key in names} | {key: one for key, one in given.items() if key not in names}


def _stronger(plain: Mapping[str, Given], own: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """A method's settings: its own, and the plain ones that it knows and that are not given closer to it."""
    kept = {key: one for key, one in plain.items() if key in known and (key not in own or one.layer > own[key].layer)}
    return {**own, **kept}

"""A method before it is made: its settings, resolved once, and the further models and indexes that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnothi import config, methods
from gnothi.config import REPEATED, Given, Settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.methods.registry import METHODS, MethodSpec
from gnothi.methods.steps.gating import REPLY, GateSpec
from gnothi.methods.steps.settings import ModelDefaults, SelfKnowledge, measured_by, measured_settings
from gnothi.models.identity import declaration_of
from gnothi.models.of_function import as_model
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.foreign import as_retriever
from gnothi.signals import registry as signals
from gnothi.signals.kinds.self_report import KNOW
from gnothi.signals.registry import SECTION
from gnothi.signals.stopping import KEY as STOPPING

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
    a study, ``warning`` what may mislead about it."""

    name: str
    values: Mapping[str, Any]
    given: Mapping[str, Given]
    named: Mapping[str, tuple[type, Any]]
    spec: MethodSpec
    variant: str = ""
    warning: str = ""

    @property
    def gate(self) -> GateSpec | None:
        """With its signal and threshold; None for a method without one, or with one whose threshold cannot be chosen."""
        gate = self.spec.gate
        return None if gate is None else gate.of(self.values)

    @property
    def never_retrieves(self) -> bool:
        """Whether its settings say that its gate never fires."""
        return (gate := self.gate) is not None and self.values[gate.key] == float("inf")

    @property
    def always_retrieves(self) -> bool:
        """Whether its settings say that its gate always fires."""
        return (gate := self.gate) is not None and gate.open is not None and bool(self.values[gate.open])

    @property
    def models(self) -> list[Any]:
        """The further models that it asks."""
        return [given for protocol, given in self.named.values() if protocol is LanguageModel]

    def speaker(self, model: Any) -> Any:
        """The model that its gate listens to: ``model``, unless a setting names another."""
        _, named = self.named.get(((gate := self.gate) and gate.speaker) or "", (None, model))
        return named

    def changed(self, values: Mapping[str, Any], source: str) -> PlannedMethod:
        """With other (typed) values for some settings, which ``source`` gave."""
        given = {key: Given(value, source) for key, value in values.items()}
        return replace(self, values={**self.values, **values}, given={**self.given, **given})


def plan_methods(given: Sequence[object], settings: Settings, model: Any = None) -> tuple[PlannedMethod, ...]:
    """The methods (as for ``methods.spec``) with what was given to each: plain keys that it has, and those under its name
    (``seakr.threshold``), which win over plain ones of the same layer or one below; and with the defaults that they have for
    the main ``model``. Text becomes typed values here, and nowhere behind it.

    A plain key must be a setting of at least one of them, or else of signals: ``samples`` is ``signal.samples``. That
    must be a setting of a signal that one of them measures. What a file or the environment says, which serve many commands,
    may also be for other methods and signals. Raises UnknownName (for names and settings) and InvalidSetting.
    """
    known = {one.name: one for one in map(methods.spec, given)}
    sections = {*SERVER_SECTIONS, *METHODS.names(), *known}
    settings.check_sections(sections - known.keys(), f"methods: {', '.join(known) or 'none'}")
    plain = settings.plain({MODEL_SECTION, INDEX_SECTION, *sections})
    own = {name: settings.section(name) for name in known}
    plain = _qualified(plain, {key for one in known.values() for key in one.settings})
    check_keys(plain, [*known])
    planned = tuple(_planned(one, plain, own[one.name], model) for one in known.values())
    for key, value in plain.items():
        unused = all(key not in method.given and not _superseded(method.name, value, method.given) for method in planned)
        if unused and not value.shared:
            refuse_unmeasured(key, value, _measured(planned))
    return planned


def _planned(known: MethodSpec, plain: Mapping[str, Given], own: Mapping[str, Given], model: Any) -> PlannedMethod:
    name, optional = known.name, known.optional
    given = _stronger(plain, _qualified(own, known.settings), known.settings)
    objects = {
        key: fitting(one.value, optional[key], key)
        for key, one in given.items()
        if key in optional and not isinstance(one.value, str | None)
    }
    given |= {key: given[key]._replace(value=name_of(value)) for key, value in objects.items()}
    if STOPPING in given and given[STOPPING].layer == REPEATED and _outdated(given, known.gate):
        del given[STOPPING]
    of_signals = {key: one for key, one in given.items() if key.startswith(_OF_SIGNALS)}
    values = config.check({key: one for key, one in given.items() if key not in of_signals}, known.settings, f"method {name}")
    has = measured_settings(known.method, {**known.defaults, **values})
    for key, one in of_signals.items():
        if key in has:
            values |= config.check({key: one}, known.settings, f"method {name}")
        else:
            del given[key]
            if key in own and not _superseded(name, one, given):
                refuse_unmeasured(key, one, _measured([PlannedMethod(name, values, given, {}, known)]))
    methods.check(known, values)
    named = {
        key: (optional[key], objects.get(key, value)) for key, value in values.items() if key in optional and value is not None
    }
    defaults = {key: value for key, value in known.defaults.items() if key in has or not key.startswith(_OF_SIGNALS)}
    planned = PlannedMethod(name, defaults | values, given, named, known)
    special: ModelDefaults | None = getattr(known.method, "defaults_for", None)
    if special is not None and model == special.model and given.keys().isdisjoint({*special.values, *special.others}):
        further = {key: (optional[key], value) for key, value in special.values.items() if key in optional}
        planned = replace(planned.changed(special.values, f"the default for {model}"), named=named | further)
    return replace(planned, warning=_untrained(planned, model)) if hasattr(known.method, "asks_self_knowledge") else planned


def _outdated(given: Mapping[str, Given], gate: GateSpec | None) -> bool:
    """Whether a run that is repeated stopped drawing samples by a rule of another threshold, another signal, or other settings
    that scores depend on."""
    of_gate = {*REPLY, *((gate.key, gate.signal_key) if gate else ())}
    return any(one.layer > REPEATED and (key in of_gate or key.startswith(_OF_SIGNALS)) for key, one in given.items())


def _untrained(method: PlannedMethod, model: Any) -> str:
    """A warning where its filter listens to a model that nobody trained for it; ``model`` is the main one. Models given as
    objects do not say."""
    asks: SelfKnowledge = method.spec.method.asks_self_knowledge  # type: ignore[attr-defined]
    _, judge = method.named.get("judge", (None, model))
    if method.values[asks.key] != asks.value or not isinstance(judge, str):
        return ""
    declared = declaration_of(judge)
    if declared.trained == "self-knowledge" or KNOW.name in (declared.tasks or ()):
        return ""
    return (
        f"{method.name}: nobody trained the model {judge!r} to say what it knows, by which the filter goes. Train it with "
        f"`gnothi train self-knowledge`, or have it asked whether a sentence is useful: the setting {asks.instead}."
    )


def given_to(known: MethodSpec, settings: Settings) -> dict[str, Given]:
    """What was given to the method, by the names of its settings."""
    return _stronger(settings.given, settings.section(known.name), known.settings)


def takes(name: str, settings: Settings) -> set[str]:
    """The keys of the settings that count for the method: not those of signals that it does not measure."""
    known = methods.spec(name)
    given = given_to(known, settings)
    has = measured_settings(known.method, {**known.defaults, **{key: one.value for key, one in given.items()}})
    return {key for key in known.settings if key in has or not key.startswith(_OF_SIGNALS)}


def _superseded(name: str, setting: Given, given: Mapping[str, Given]) -> bool:
    """Whether the signal was named nearer to the command than its setting, as where a run is repeated with another signal."""
    gate = methods.spec(name).gate
    named = (given.get(key) for key in (SECTION, gate.signal_key if gate else None) if key)
    return any(other.layer > setting.layer for other in named if other)


def _measured(planned: Sequence[PlannedMethod]) -> dict[str, list[str]]:
    return {method.name: measured_by(method.spec.method, method.values) or ["perplexity"] for method in planned}


def refuse_unmeasured(key: str, given: Given, measured_by_name: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidSetting for a setting that none of the signals has that these methods, or a training, measure."""
    lines = []
    for name, measured in measured_by_name.items():
        has = sorted({key for signal in measured for key in signals.settings_of(signal)})
        what = f"{' and '.join(measured)}, with the settings: {', '.join(has) or 'none'}" if measured else "no signal"
        lines.append(f"{name} measures {what}")
    source = f" (from {given.source})" if given.source else ""
    having = [name for name in signals.names() if key in signals.settings_of(name)]
    raise InvalidSetting(
        f"setting {key!r}{source}: no signal that is measured has it ({'; '.join(lines)}). Name a signal that has it "
        f"({', '.join(having)}), or leave it out."
    )


def name_of(source: Any) -> str:
    """What a model, an index or the like is called in records: its name, or what named it."""
    return source if isinstance(source, str) else str(getattr(source, "name", type(source).__name__))


def fitting(value: Any, protocol: type, key: str) -> Any:
    """A name as it is, an object of the protocol, or a function in its place, as one. Raises InvalidSetting for any other."""
    if value is None or isinstance(value, str):
        return value
    value = as_model(value) if protocol is LanguageModel else as_retriever(value, key) if protocol is Retriever else value
    if isinstance(value, type) or not isinstance(value, protocol):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"an object of the class {type(value).__name__}"
        lacking = sorted(name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name))
        lacks = f" It lacks {', '.join(lacking)}." if lacking and not isinstance(value, type) else ""
        expected = "a name, a function of one text," if protocol is LanguageModel else "a name"
        raise InvalidSetting(
            f"{key}: got {what}, expected {expected} or an object that does what {protocol.__name__} says.{lacks}"
        )
    return value


def check_keys(plain: Mapping[str, Given], names: Sequence[str], further: Collection[str] = ()) -> None:
    """Raise InvalidSetting for a flag given as a setting, UnknownName for a key that none of the methods has, nor ``further``
    lists."""
    known = {name: methods.spec(name).settings for name in names}
    union = {*further, *(key for one in known.values() for key, setting in one.items() if setting.typed)}
    for key, given in plain.items():
        if key in union or (given.shared and _of_any(key)):
            continue
        if key in _NO_SETTINGS:
            raise InvalidSetting(
                f"setting {key!r} (from {given.source}): there is no setting of this name. Use <--{key}> instead."
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
    return any({key, f"{_OF_SIGNALS}{key}"} & methods.spec(name).settings.keys() for name in methods.names())


def check_sections(settings: Settings, names: Iterable[str]) -> None:
    """As ``Settings.check_sections``, where the methods of these names take part."""
    taking = dict.fromkeys(names)
    settings.check_sections({*METHODS.names(), *SERVER_SECTIONS}.difference(taking), f"methods: {', '.join(taking) or 'none'}")


def _qualified(given: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """With ``signal.`` before the keys that only signals have."""
    names = {key: full for key in given if key not in known and (full := f"{_OF_SIGNALS}{key}") in known}
    named = {full: given[key] for key, full in names.items()}
    return named | {
        key: one for key, one in given.items() if key not in names and (key not in named or one.layer >= named[key].layer)
    }


def _stronger(plain: Mapping[str, Given], own: Mapping[str, Given], known: Collection[str]) -> dict[str, Given]:
    """A method's settings: its own, and the plain ones that it knows and that are not given closer to it."""
    shared = {key: one for key, one in plain.items() if key in known and (key not in own or one.layer > own[key].layer)}
    return {**own, **shared}

"""Methods by name: those of this package, one file each, those of other packages, and those given in this process."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

from gnothi import config
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.filtering.complexity import ComplexitySource
from gnothi.filtering.knowledge import KnowledgeSource
from gnothi.filtering.learned import GateSource
from gnothi.filtering.likeness import Likeness
from gnothi.filtering.utility import DemonstrationSource
from gnothi.methods.steps.gating import GateSpec
from gnothi.methods.steps.of_function import as_method
from gnothi.methods.steps.settings import Measuring, check_signals, signals_of
from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Reranker, Retriever
from gnothi.registry import BUILT_IN, Own, Registry
from gnothi.signals import registry as signals
from gnothi.signals.entailment import Entailment
from gnothi.signals.probe import Probe
from gnothi.types import Capabilities, Profile

METHODS: Registry[type[Method]] = Registry(
    "method",
    "gnothi.methods",
    home="gnothi.methods",
    like=("name", "needs"),
    besides=("registry", "planned"),
    adapt=as_method,
)
_FLAGS = {"model": "<--model>", "retriever": "<--index>", "graph": "<--graph>"}
_MODEST: Mapping[str, object] = {"choose": "text", "ensemble": False}
"""Settings of methods, and the value that needs least of a model."""
_USUAL_TOKENS = 10_000
_PROTOCOLS: Mapping[type, str] = {
    LanguageModel: "a model (none: the main one)",
    Retriever: "an index (none: the main one)",
    KnowledgeGraph: "a graph (none: the main one)",
    Reranker: "a re-ranker: lab, a folder or a hub id, or one behind an API",
    DemonstrationSource: "a utility reference",
    ComplexitySource: "a complexity classifier (a folder made by gnothi train complexity)",
    GateSource: "a learnt gate (a folder made by gnothi calibrate --learn)",
    KnowledgeSource: "a knowledge reference (a folder made by gnothi train knowledge-reference)",
    Entailment: "a cross-encoder for NLI (a folder or a hub id; none: the model is asked)",
    Likeness: "a model for BERTScore (a folder or a hub id), or lexical (shared words)",
    Probe: "a probe: lab, or a folder made by gnothi train probe",
}
"""What a method's field may hold, and what a user names in its place."""


@dataclass(frozen=True, slots=True)
class Description:
    """What there is to know about a method before using it. ``resources`` are the fields it cannot do without and the protocol
    each wants; ``needs`` is what the model must offer with the settings at their defaults; ``settings`` are its own, with the
    resources it can do without, ``shared`` the groups (``shared_settings``) of those that it has in common with others;
    ``source`` is the first line of its module; ``origin`` is the distribution that brings it."""

    name: str
    summary: str
    source: str
    resources: Mapping[str, type]
    needs: Capabilities
    settings: tuple[config.Setting, ...]
    shared: tuple[str, ...] = ()
    origin: str = BUILT_IN


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """What a method's class says, read once. ``settings`` and their ``defaults`` are what can be set, with a name for each
    resource that the method can do without (those of signals are all there; which of them count depends on the signals that
    are measured: ``planned``). ``required`` and ``optional`` are its fields for models, retrievers and the like, each with its
    protocol; users name optional ones like settings. ``gate``: what makes up its gate, whose threshold `gnothi calibrate`
    chooses."""

    name: str
    method: type[Method]
    settings: Mapping[str, config.Setting]
    defaults: Mapping[str, Any]
    required: Mapping[str, type]
    optional: Mapping[str, type]
    gate: GateSpec | None

    @property
    def resources(self) -> dict[str, type]:
        return {**self.required, **self.optional}

    @property
    def usual_tokens(self) -> int:
        """That a question makes its model read and write: the order of size in our runs with demonstrations in plain text."""
        return int(getattr(self.method, "usual_tokens", _USUAL_TOKENS))

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """To another process by its name."""
        return spec, (self.name,)


def names() -> tuple[str, ...]:
    return METHODS.names()


def spec(method: object) -> MethodSpec:
    """Of a method given by name, as ``module:object``, as a class, or as an async function.

    Raises UnknownName, BrokenPlugin for a module that cannot be imported, InvalidSetting for what is no method."""
    if isinstance(method, Own) or (isinstance(method, str) and ":" not in method):
        return _spec_of(method, METHODS.find(method))
    value: Any = METHODS.imported(method) if isinstance(method, str) else as_method(method)
    lacking = [key for key in ("name", "needs", "__call__") if not hasattr(value, key)]
    if not isinstance(value, type) or lacking or not is_dataclass(value):
        lacks = f" It lacks {', '.join(lacking)}." if isinstance(value, type) and lacking else ""
        raise InvalidSetting(
            f"method: got {method!r:.80}, expected a name, as in 'seakr', an async function of (steps, question, ...), or a "
            f"class that does what gnothi.protocols.Method says (a frozen dataclass).{lacks}"
        )
    known = cast("type[Method]", value)
    return _spec_of(METHODS.add(known.name, known), known)


@functools.cache
def _spec_of(name: str, method: type[Any]) -> MethodSpec:
    """Resolving a class's annotations takes milliseconds, and a plan asks many times."""
    without = {item.name for item in fields(method) if item.default is MISSING}
    resources = _resources_of(method)
    optional = {key: protocol for key, protocol in resources.items() if key not in without}
    helps = {item.name: item.metadata.get("help", "") for one in (method, Measuring) for item in fields(cast("Any", one))}
    named = {
        key: config.Setting(key, str | None, None, f"{helps[key.rpartition('.')[2]]} Names {_PROTOCOLS[protocol]}.")
        for key, protocol in optional.items()
    }
    settings = config.settings_of(method) | named
    return MethodSpec(
        name,
        method,
        settings,
        {key: one.default for key, one in settings.items()},
        {key: protocol for key, protocol in resources.items() if key in without},
        optional,
        getattr(method, "gating", None),
    )


def _resources_of(method: type[Any]) -> dict[str, type]:
    """The fields that hold a model, a retriever or the like, by key, with those of nested settings."""
    hints = typing.get_type_hints(method)
    resources: dict[str, type] = {}
    for item in fields(method):
        annotation, key = hints[item.name], config.section_of(item)
        if is_dataclass(annotation) and isinstance(annotation, type):
            resources |= {f"{key}.{inner}": protocol for inner, protocol in _resources_of(annotation).items()}
        for protocol in _PROTOCOLS:
            if protocol is annotation or protocol in typing.get_args(annotation):
                resources[key] = protocol
    return resources


def create(name: str, resources: Mapping[str, object], settings: Mapping[str, object]) -> Method:
    """The method, ready to answer.

    ``resources`` maps fields (model, retriever, judge ...) to what fills them; ones the method has no field for are left aside.
    ``settings`` holds texts, plain values or ``config.Given``. Raises UnknownName, InvalidSetting or MissingCapability.
    """
    return make(name, resources, config.check(settings, config.settings_of(spec(name).method), f"method {name}"))


def make(name: str, resources: Mapping[str, object], values: Mapping[str, Any]) -> Method:
    """As ``create``, of typed values. Raises InvalidSetting or MissingCapability."""
    known = spec(name)
    method = config.make(known.method, {**values, **_resources(known, resources)}, f"method {name}")
    check_signals(method)
    if isinstance(method, _Particular):
        method.check_resources()
    model = getattr(method, "model", None)
    if model is not None and (lacking := model.capabilities.lacking(method.needs)):
        raise MissingCapability(name, model, lacking, _alternative(method, model.capabilities))
    return method


@runtime_checkable
class _Particular(Protocol):
    """A method whose settings decide which resources it needs. Raises InvalidSetting or MissingCapability."""

    def check_resources(self) -> None: ...


class _Unspecified:
    """In the place of a model or a probe that is not there: nothing was calibrated on it, and it can do everything."""

    name = "unspecified"
    capabilities = Capabilities(*(True for _ in fields(Capabilities)))
    thresholds: Mapping[str, float] = {}
    profile = Profile()

    def counter(self, filters: object = ()) -> Callable[..., object]:  # noqa: ARG002
        """As an index that counts."""
        return self.counter


class _AnyThreshold(dict[str, float]):
    """As if there were a threshold for every signal."""

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002
        return 0.0


class _Possible(_Unspecified):
    """What might be given: it may be calibrated for any signal."""

    thresholds = _AnyThreshold()
    profile = Profile(thresholds=thresholds)


def check(known: MethodSpec, values: Mapping[str, Any]) -> None:
    """Raise InvalidSetting for typed values, names of resources among them, that fit with no model or index: to be known
    before any is opened."""
    named = [key for key in known.optional if values.get(key) is not None]
    plain = {key: value for key, value in values.items() if key not in known.optional}
    possible = dict.fromkeys([*known.required, *named], _Possible())
    check_signals(config.make(known.method, {**plain, **possible}, f"method {known.name}"))


def describe(name: str) -> Description:
    """Summary, resources and settings of the method."""
    known = spec(name)
    method: Any = known.method
    defaults = method(**dict.fromkeys(known.required, _Unspecified()))
    module = inspect.getmodule(method)
    source = ((module and inspect.getdoc(module)) or method.__module__).partition("\n")[0]
    summary = (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")
    own, shared = _own_and_shared(known)
    origin = METHODS.entry(known.name).origin
    return Description(known.name, summary, source, known.required, defaults.needs, own, tuple(shared), origin)


def shared_settings() -> dict[str, tuple[config.Setting, ...]]:
    """The settings that methods share, by group."""
    return {group: settings for name in names() for group, settings in _own_and_shared(spec(name))[1].items()}


def _own_and_shared(known: MethodSpec) -> tuple[tuple[config.Setting, ...], dict[str, tuple[config.Setting, ...]]]:
    """A method's settings: its own, and by group those of the bases that have one."""
    method, settings = known.method, {key: one for key, one in known.settings.items() if one.typed}
    shared: dict[str, tuple[config.Setting, ...]] = {}
    for base in method.__mro__[1:]:
        if group := vars(base).get("group"):
            own = {
                item.name: config.section_of(item) for item in fields(cast("Any", base)) if item.name in base.__annotations__
            }
            keys = [
                key
                for key in settings
                if key not in method.__annotations__ and (key in own or key.partition(".")[0] in own.values() - own.keys())
            ]
            shared[group] = tuple(settings.pop(key) for key in keys)
    return tuple(sorted(settings.values(), key=lambda one: one.key not in method.__annotations__)), shared


def _resources(known: MethodSpec, values: Mapping[str, object]) -> dict[str, object]:
    for field_name, protocol in known.required.items():
        if values.get(field_name) is None:
            flag = _FLAGS.get(field_name, f"<--{field_name}>")
            raise InvalidSetting(
                f"method {known.name!r} needs a {field_name} ({protocol.__name__}): got none. Give one with {flag}."
            )
    resources = known.resources
    for item in fields(cast("Any", known.method)):
        if item.metadata.get("required") and values.get(item.name) is None:
            what = _PROTOCOLS[resources[item.name]]
            raise InvalidSetting(f"method {known.name!r} needs {what}: got none. Give one with <--set {item.name}=PATH>.")
    return {field_name: values[field_name] for field_name in resources if values.get(field_name) is not None}


def _alternative(method: Method, capabilities: Capabilities) -> str:
    """What would work instead: a signal within the model's means, a model beside it, or another model."""
    other_model = "a model run in this process (<--model> lab, a folder or a hub id) offers all of them"
    for name, value in _MODEST.items():
        if getattr(method, name, value) != value:
            modest: Method = replace(cast("Any", method), **{name: value})
            if not capabilities.lacking(modest.needs):
                return f"Use <--set {name}={config.as_text(value)}>, or another model: {other_model}."
    possible = signals.within(capabilities)
    best = "consistency" if "consistency" in possible else possible[0] if possible else ""
    key = _replaceable(method, best, capabilities) if best else None
    beside = [key for key in _helpers(method) if _would_do(method, key, capabilities)]
    first = f"Give a model that does as <--set {beside[0]}=MODEL>, or use" if beside else "Use"
    if key is None:
        return f"{first} another model: {other_model}."
    others = ", ".join(signal for signal in possible if signal != best and signal.isidentifier())  # no <lambda>
    return (
        f"{first} <--set {key}={best}>" + (f" (or one of: {others})" if others else "") + f", or another model: {other_model}."
    )


def _replaceable(method: Method, signal: str, capabilities: Capabilities) -> str | None:
    """The setting that names a signal and asks for too much, where ``signal`` in its place would do."""
    for key, value in signals_of(method).items():
        if value in signals.SIGNALS and capabilities.lacking(signals.find(value).needs):
            other: Method = replace(cast("Any", method), **{key: signal})
            if not capabilities.lacking(other.needs):
                return key
    return None


def _helpers(method: Method) -> list[str]:
    """Fields for further models that were left empty."""
    optional = _spec_of(method.name, type(method)).optional
    return [key for key, protocol in optional.items() if protocol is LanguageModel and getattr(method, key) is None]


def _would_do(method: Method, key: str, capabilities: Capabilities) -> bool:
    """Whether a model in that field leaves nothing to be asked of the main one."""
    try:
        filled: Method = replace(cast("Any", method), **{key: _Unspecified()})
    except InvalidSetting:  # with these settings, there is nothing for it to do
        return False
    return not capabilities.lacking(filled.needs)

"""A method made of one async function."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass, replace
from typing import Any, ClassVar, Literal, cast, overload

from gnothi import config
from gnothi.errors import InvalidSetting
from gnothi.methods.steps.function_steps import LARGEST, Draft, Steps
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import needs_of
from gnothi.own_code import running
from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Reranker, Retriever
from gnothi.signals import registry as signals
from gnothi.types import Answer, Capabilities, Question

Function = Callable[..., Awaitable[Answer | str]]
_RESOURCES = (LanguageModel, Retriever, KnowledgeGraph, Reranker)
_GATE = GateSpec("signal", "threshold")


@dataclass(frozen=True, slots=True)
class OfFunction(ReaderSettings):
    """What every such method does beside its function. ``passed`` are the parameters of the function after the first two,
    ``measures`` the signals that its code names."""

    model: LanguageModel

    name: ClassVar[str]
    function: ClassVar[Function]
    passed: ClassVar[tuple[str, ...]] = ()

    def check_settings(self) -> None:
        if self.gating is not None and self.signal is not None:
            _GATE.require(self.signal, self._threshold)

    @property
    def needs(self) -> Capabilities:
        needs = self.answering_needs
        for name in self.measures:
            needs |= needs_of(name)
        return needs

    @property
    def _threshold(self) -> float | None:
        threshold = getattr(self, "threshold", None)
        if self.gating is None:
            return threshold if isinstance(threshold, float) else None
        return threshold_of(self.model.profile.thresholds, self.signal, threshold, self.probe)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        values = {key: getattr(self, key) for key in self.passed}
        threshold = self._threshold
        if self.gating is not None:
            _GATE.require(str(self.signal), threshold)
        if threshold is not None:
            values["threshold"] = min(threshold, LARGEST)
        own: Any = self
        reader = replace(own, signal=None) if "signal" in type(self).__annotations__ else self  # the gate's, not the answer's
        steps = Steps(self.model, getattr(self, "retriever", None), question, threshold, reader, self.name)
        with running(f"method {self.name!r}"):
            result = await type(self).function(steps, question, **values)
        return self._answer(result, question)

    def _answer(self, result: object, question: Question) -> Answer:
        """Raises InvalidSetting for what is no answer."""
        if isinstance(result, Draft):
            return result.as_answer()
        if isinstance(result, str):
            return Answer(as_choice(result, question.choices))
        if isinstance(result, Answer):
            return result
        if inspect.iscoroutine(result):
            result.close()
            raise InvalidSetting(
                f"method {self.name!r}: the function returned a coroutine: put `await` before what it returns."
            )
        raise InvalidSetting(
            f"method {self.name!r}: the function returned {result!r:.80}, expected what steps.draft or steps.read gave, or a "
            "text."
        )


@overload
def method(function: Function, /) -> type[Method]: ...


@overload
def method(*, searches: bool = True) -> Callable[[Function], type[Method]]: ...


def method(function: Function | None = None, /, *, searches: bool = True) -> Any:
    """Make a method of ``async def name(steps, question, ...)``: ``steps`` are ``gnothi.Steps``, and what it returns is an
    answer of theirs, or a text.

    Further parameters are its settings, with their defaults; ``setting(default, help, at_least=, at_most=)`` as a default adds
    help and bounds. One that all methods have (``max_tokens``, ``reason``) gets another default by it. ``threshold`` is that of
    its gate, ``signal`` the gate's signal, unless the code names the only one itself (``signal="consistency"``): then ``gnothi
    calibrate`` can choose the threshold. A parameter annotated as ``LanguageModel | None`` or the like takes another model.
    Without ``searches`` it needs no index.

    Raises InvalidSetting for a function that cannot be called so.
    """
    if function is None:
        return lambda one: method_of(one, searches)
    return method_of(function, searches)


@functools.cache
def method_of(function: Any, searches: bool = True) -> type[Method]:
    """The method of a function. Raises as ``method``."""
    if not (inspect.iscoroutinefunction(function) and hasattr(function, "__code__")):
        raise InvalidSetting(f"gnothi.method: got {function!r:.80}, expected an `async def` of (steps, question, ...).")
    name: str = function.__name__
    parameters = [*inspect.signature(function).parameters.values()]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or any(one.kind not in positional for one in parameters[:2]):
        raise InvalidSetting(f"method {name!r}: got {name}{inspect.signature(function)}, expected (steps, question, ...).")
    hints = _hints(function, parameters[2:])
    settings = [_field(name, one, hints[one.name]) for one in parameters[2:]]
    own = {one[0] for one in settings}
    spoken = _signals_named(function.__code__)
    if "signal" not in own and "threshold" in own and len(spoken) == 1:
        (only,) = spoken
        settings.append(
            ("signal", Literal[only], field(default=only, kw_only=True, metadata={"help": "What its gate measures."}))
        )
        own.add("signal")
    number = any(key == "threshold" and float in (annotation, *typing.get_args(annotation)) for key, annotation, _ in settings)
    gated = number and "signal" in own
    namespace: dict[str, Any] = {
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": inspect.getdoc(function) or f"The function {name} of {function.__module__}.",
        "name": name,
        "function": staticmethod(function),
        "passed": tuple(one.name for one in parameters[2:]),
        "measures": tuple(sorted(spoken)),
        "gating": _GATE if gated else None,
    }
    resources: list[Any] = [("retriever", Retriever)] if searches else []
    every = [*resources, *settings]
    cls = make_dataclass(name, every, bases=(OfFunction,), namespace=namespace, frozen=True, slots=True)
    return cast("type[Method]", cls)


def as_method(value: Any) -> Any:
    """An async function as a method; anything else as it is."""
    return method_of(value) if inspect.iscoroutinefunction(value) else value


def _hints(function: Any, parameters: list[inspect.Parameter]) -> Mapping[str, Any]:
    """The type of each parameter; that of its default where it has no annotation. Others' annotations are not looked at: they
    may be imported for type checkers alone."""
    annotations = {one.name: one.annotation for one in parameters if one.annotation is not one.empty}
    outer = dict(inspect.getclosurevars(function).nonlocals)
    try:
        hints = typing.get_type_hints(
            types.SimpleNamespace(__annotations__=annotations), function.__globals__, outer, include_extras=True
        )
    except NameError as error:
        raise InvalidSetting(f"method {function.__name__!r}: {error}, in the annotation of a parameter.") from None
    untyped = {one.name: type(_default(one)) for one in parameters if one.name not in hints}
    return hints | untyped


def _default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    return default.default if isinstance(default, Field) else default


def _field(name: str, parameter: inspect.Parameter, annotation: Any) -> tuple[str, Any, Any]:
    """A dataclass's field for a parameter. Raises InvalidSetting for one that is no setting and no resource."""
    key, default = parameter.name, _default(parameter)
    where = f"method {name!r}: parameter {key!r}"
    shared = {item.name: item for item in fields(ReaderSettings)}
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise InvalidSetting(f"{where} takes anything, expected parameters with names and defaults: they are the settings.")
    if key == "retriever" or (hasattr(OfFunction, key) and key not in shared):
        raise InvalidSetting(f"{where} has the name of what every method has. Give it another.")
    if not _plain(annotation):
        if any(one in _RESOURCES for one in (annotation, *typing.get_args(annotation))):
            metadata = {"help": f"For {key} of {name}."}
            default = MISSING if default is parameter.empty else default
            return key, annotation, field(default=default, kw_only=True, metadata=metadata)
        raise InvalidSetting(
            f"{where} has the type {config.describe_type(annotation)}, expected a number, text, true or false, a choice "
            "(Literal), a list of these (tuple), or a model, index, graph or re-ranker (gnothi.protocols)."
        )
    if default is parameter.empty:
        raise InvalidSetting(f"{where} has no default, expected one: parameters after the question are settings.")
    metadata = dict(parameter.default.metadata) if isinstance(parameter.default, Field) else {}
    if key in shared:
        annotation = typing.get_type_hints(ReaderSettings, include_extras=True)[key]
        metadata = {**shared[key].metadata, **metadata}
    elif key == "threshold" and annotation is int:
        annotation = float
    metadata.setdefault("help", f"Parameter of {name}.")
    return key, annotation, field(default=config.convert(default, annotation, key), kw_only=True, metadata=metadata)


def _plain(annotation: Any) -> bool:
    probe = make_dataclass("Probe", [("value", annotation)])
    return "value" in config.settings_of(probe)


def _signals_named(code: types.CodeType) -> frozenset[str]:
    """The signals that code gives by name, as in ``signal="consistency"``: what is another name for it cannot be seen here."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    names: frozenset[str] = frozenset().union(*map(_signals_named, inner))
    if any(isinstance(one, tuple) and "signal" in one for one in code.co_consts):  # names of keywords in a call
        names |= {one for one in code.co_consts if isinstance(one, str)} & set(signals.names())
    return names

"""Settings: dataclass defaults < a run that is repeated, a calibration < TOML file < environment < ``--set key=value``.

A setting is a dataclass field whose type is plain data (int, float, bool, str, Path, Literal, Optional, tuple) or a dataclass
of such fields, reached with a dot: the field's name, or its ``section`` (``signal.layer``). Fields of other types are resources
(a model, a retriever), not settable. Keys are dotted; what precedes the dot is a section (``model.dtype``). Unknown keys fail
and list the valid ones. A text is converted once, by ``check`` (or ``build``); what is behind it takes typed values (``make``).

``None`` is written ``none``: TOML and the shell have no other way. So an optional text setting cannot hold the word "none".
"""

from __future__ import annotations

import math
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import tomli_w

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName, shown
from gnothi.fields import range_of
from gnothi.files import TOML_ERRORS, nearest

T = TypeVar("T")

ENVIRONMENT_PREFIX = "GNOTHI_"
# Variables with a meaning of their own; every other GNOTHI_ variable is a setting.
RESERVED_VARIABLES = frozenset({"GNOTHI_DEBUG", "GNOTHI_SHARED", "GNOTHI_CONFIG", "GNOTHI_CACHE"})

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_PLAIN = (str, bool, int, float, list, tuple, dict, types.NoneType)
"""What files and command lines give; anything else is an object of a Python caller."""


CALIBRATED, REPEATED, CHOSEN, WRITTEN, ENVIRONMENT, COMMAND, DECIDED = range(-3, 4)
"""Layers of values, from the weakest: what a calibration's scores depend on, what a run that is repeated had, what a
calibration chose, what stands in a file that somebody wrote, in the environment, on the command line or in a keyword, and what
a command itself decides."""


class Given(NamedTuple):
    """A value as someone gave it (text, or what TOML read) and where, for error messages. Of two values for one thing that of
    the higher ``layer`` counts."""

    value: object
    source: str
    layer: int = DECIDED

    @property
    def shared(self) -> bool:
        """Whether it was given for more than this command: what has no use for it here may have one elsewhere."""
        return self.layer < COMMAND


@dataclass(frozen=True, slots=True)
class Named:
    """In ``Annotated[str, Named(names)]``: a text that is one of ``names()``, which are looked up when a value is read, so that
    those of other packages count. ``name_of`` gives the name of an object that may stand for it."""

    names: Callable[[], Sequence[str]]
    name_of: Callable[[Any], str] | None = None


class Setting(NamedTuple):
    """One settable field: dotted key, type, default (``dataclasses.MISSING`` when it must be given) and help text. ``typed``:
    a user gives it; else only calibrations and the files of runs do, and it is not listed. ``range``: of a number, in words."""

    key: str
    annotation: Any
    default: Any
    help: str = ""
    typed: bool = True
    range: str = ""

    @property
    def type_name(self) -> str:
        return describe_type(self.annotation)


# --- one value -----------------------------------------------------------------------------------------------------


def convert(value: object, annotation: Any, key: str, source: str = "") -> Any:
    """``value`` as the type ``annotation``: text is parsed, anything else must already fit.

    Raises InvalidSetting naming ``key``, what was got, what was expected and, when given, the source.
    """
    try:
        return _convert(value, annotation)
    except InvalidSetting as error:  # of an object that may not stand for a name
        raise InvalidSetting(f"setting {key!r}: {error.message}") from None
    except (ValueError, OverflowError):
        where = f" (from {source})" if source else ""
        raise InvalidSetting(f"setting {key!r}: got {shown(value)}{where}, expected {describe_type(annotation)}.") from None


def _convert(value: object, annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _convert_annotated(value, *get_args(annotation))
    if origin in (Union, types.UnionType):
        return _convert_union(value, get_args(annotation))
    if origin is Literal:
        return _convert_literal(value, get_args(annotation))
    if origin is tuple:
        return _convert_tuple(value, get_args(annotation))
    return _convert_scalar(value, annotation)


def _convert_scalar(value: object, annotation: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else None
    if annotation is types.NoneType and (value is None or word == "none"):
        return None
    if annotation is bool and (isinstance(value, bool) or word in _TRUE | _FALSE):
        return value is True or word in _TRUE
    if annotation is int and (isinstance(value, str) or type(value) is int):
        return int(value)
    if annotation is float and (isinstance(value, str) or type(value) in (int, float)):
        number = float(cast("Any", value))
        if not math.isnan(number):
            return number
    if annotation is str and isinstance(value, str):
        return value
    if annotation is Path and isinstance(value, str | Path):
        return Path(value)
    raise ValueError(value)


def _convert_annotated(value: object, inner: Any, *about: object) -> Any:
    for named in about:
        if isinstance(named, Named):
            if named.name_of is not None and (type(value) not in _PLAIN or (isinstance(value, str) and ":" in value)):
                return named.name_of(value)
            return _convert_literal(value, named.names())
    return _convert(value, inner)


def _convert_literal(value: object, options: Sequence[object]) -> object:
    for option in options:
        if type(value) is type(option) and value == option:
            return option
    for option in options:
        if isinstance(value, str) and value.strip() == str(option):
            return option
    raise ValueError(value)


def _convert_union(value: object, members: Sequence[Any]) -> Any:
    # Text fits every union that holds str, so the narrower members are asked first.
    order = sorted(members, key=lambda member: (member is str, member is Path, member is not types.NoneType))
    for member in order:
        try:
            return _convert(value, member)
        except ValueError:
            continue
    raise ValueError(value)


def _convert_tuple(value: object, members: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = _split(value)
    if not isinstance(value, list | tuple):
        raise ValueError(value)
    if len(members) == 2 and members[1] is Ellipsis:
        return tuple(_convert(item, members[0]) for item in value)
    if len(value) != len(members):
        raise ValueError(value)
    return tuple(_convert(item, member) for item, member in zip(value, members, strict=True))


def _split(text: str) -> list[Any]:
    """``a, b`` or a TOML array, for items that hold commas."""
    text = text.strip()
    if text.startswith("["):
        try:
            return cast("list[Any]", tomllib.loads(f"items = {text}")["items"])
        except TOML_ERRORS:
            raise ValueError(text) from None
    return [item.strip() for item in text.split(",")] if text else []


def describe_type(annotation: Any) -> str:
    """A type in words a user knows: ``a whole number``, ``one of ffn, residual``."""
    origin = get_origin(annotation)
    if options := _options(annotation):
        return "one of " + ", ".join(options)
    if origin is Annotated:
        return describe_type(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = get_args(annotation)
        options = [option for member in members for option in _options(member)]
        others = [describe_type(member) for member in members if not _options(member)]
        return " or ".join([*(["one of " + ", ".join(options)] if options else []), *others])
    if origin is tuple:
        members = get_args(annotation)
        if len(members) == 2 and members[1] is Ellipsis:
            return f"a list (a, b, ...), each {describe_type(members[0])}"
        return "a list of " + ", ".join(describe_type(member) for member in members)
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        Path: "a path",
        types.NoneType: "none",
    }
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _options(annotation: Any) -> list[str]:
    """The values of a type that has only so many."""
    if get_origin(annotation) is Literal:
        return [str(option) for option in get_args(annotation)]
    if get_origin(annotation) is Annotated:
        return [name for about in get_args(annotation)[1:] if isinstance(about, Named) for name in about.names()]
    return []


def as_text(value: object) -> str:
    """``value`` as ``--set`` would take it; ``convert`` reads it back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        items = [as_text(item) for item in value]
        ambiguous = any("," in item or item != item.strip() or not item or item.startswith("[") for item in items)
        return tomli_w.dumps({"items": items}).removeprefix("items = ").strip() if ambiguous else ", ".join(items)
    return str(value)


# --- the settings of a dataclass -----------------------------------------------------------------------------------


def settings_of(cls: type, prefix: str = "") -> dict[str, Setting]:
    """The settable fields of a dataclass by dotted key, nested dataclasses flattened."""
    return dict(_settings_of(cast("Any", cls), prefix))


@cache
def _settings_of(cls: type, prefix: str) -> Mapping[str, Setting]:
    """Resolving a class's annotations takes milliseconds, and a request asks many times."""
    hints = typing.get_type_hints(cls, include_extras=True)
    settings: dict[str, Setting] = {}
    for item in fields(cls):
        key, annotation = prefix + section_of(item), hints[item.name]
        if not item.init:
            continue
        if _is_plain(annotation):
            help, typed = str(item.metadata.get("help", "")), bool(item.metadata.get("typed", True))
            settings[key] = Setting(key, annotation, _default(item), help, typed, range_of(item.metadata))
        elif isinstance(annotation, type) and is_dataclass(annotation) and (nested := _default(item)) is not MISSING:
            for inner, setting in _settings_of(annotation, f"{key}.").items():
                settings[inner] = setting._replace(default=_get(nested, inner.removeprefix(f"{key}.")))
    return settings


def section_of(item: Field[Any]) -> str:
    """What a dataclass's field is called in keys: its name, unless its metadata say otherwise."""
    return str(item.metadata.get("section", item.name))


def build(cls: type[T], settings: Mapping[str, object], kind: str, **resources: object) -> T:
    """An instance of the dataclass ``cls`` from its defaults, ``resources`` and the ``settings``, by dotted key: text,
    plain values or ``Given``. Raises as ``check`` and ``make``."""
    return make(cls, {**check(settings, settings_of(cls), kind), **resources}, kind)


def make(cls: type[T], values: Mapping[str, Any], kind: str) -> T:
    """An instance of the dataclass ``cls`` from its defaults and typed ``values`` (settings and resources) by dotted key.

    ``kind`` names the class in errors ("method seakr"). Raises InvalidSetting for one that must be given and is not, and for a
    ValueError of ``__post_init__``.
    """
    required = [key for key, setting in settings_of(cls).items() if setting.default is MISSING and key not in values]
    if required:
        raise InvalidSetting(f"{kind} needs a value for {', '.join(required)}: give it with <--set {required[0]}=...>")
    try:
        return cls(**_nest(cls, values))
    except ValueError as error:
        raise InvalidSetting(f"{kind}: {error}") from error


def resolved(instance: Any) -> dict[str, Any]:
    """Every setting of a built dataclass, by dotted key."""
    return {key: _get(instance, key) for key in settings_of(type(instance))}


def check(raw_values: Mapping[str, object], settings: Mapping[str, Setting], kind: str) -> dict[str, Any]:
    """``raw_values``, typed. Raises UnknownName for a key that is none of ``settings``, InvalidSetting for a misfit."""
    values = {}
    for key, value in raw_values.items():
        raw, source, layer = value if isinstance(value, Given) else Given(value, "")
        if key not in settings or (layer in (WRITTEN, ENVIRONMENT, COMMAND) and not settings[key].typed):
            valid = [name for name, setting in settings.items() if setting.typed]
            raise UnknownName(f"setting of {kind}" + (f" (from {source})" if source else ""), key, valid)
        values[key] = convert(raw, settings[key].annotation, key, source)
    return values


def _nest(cls: type[Any], values: Mapping[str, Any], of: object = None) -> dict[str, Any]:
    """Constructor arguments from dotted keys; the nested dataclasses that inner keys change are those ``of`` an instance, or
    else the defaults."""
    arguments = {key: value for key, value in values.items() if "." not in key}
    for item in fields(cls) if len(arguments) < len(values) else ():
        within = f"{section_of(item)}."
        if inner := {key.removeprefix(within): value for key, value in values.items() if key.startswith(within)}:
            nested: Any = _default(item) if of is None else getattr(of, item.name)
            if is_dataclass(nested):
                arguments[item.name] = replace(cast("Any", nested), **_nest(type(nested), inner, nested))
    return arguments


def _default(item: Any) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _get(instance: Any, key: str) -> Any:
    *path, name = key.split(".")
    for section in path:
        instance = next(
            found
            for item in fields(instance)
            if section_of(item) == section and is_dataclass(found := getattr(instance, item.name))
        )
    return getattr(instance, name)


def _is_plain(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType, tuple):
        return all(member is Ellipsis or _is_plain(member) for member in get_args(annotation))
    if origin is Annotated:
        return _is_plain(get_args(annotation)[0])
    return origin is Literal or annotation in (int, float, bool, str, Path, types.NoneType)


# --- layers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What was given over all layers, by dotted key; the strongest layer has won already."""

    given: Mapping[str, Given] = field(default_factory=dict)

    def over(self, beneath: Mapping[str, Given]) -> Settings:
        """With those ``beneath``, which count where their layer is no lower."""
        own = self.given
        counting = {key: one for key, one in beneath.items() if key not in own or own[key].layer <= one.layer}
        return Settings({**own, **counting})

    def section(self, name: str) -> dict[str, Given]:
        """The keys under ``name.``, without it."""
        return {key.removeprefix(f"{name}."): value for key, value in self.given.items() if key.startswith(f"{name}.")}

    @classmethod
    def of(cls, values: Settings | Mapping[str, Any]) -> Settings:
        """Settings as they are; what a mapping says, flat or nested, as given to the command itself."""
        if isinstance(values, Settings):
            return values
        return cls({key: Given(value, f"{key}={value!r:.60}", COMMAND) for key, value in flatten(values).items()})

    def check_sections(self, others: Collection[str], why: str) -> None:
        """Raise InvalidSetting, which says ``why``, for what the command itself was given under one of ``others``: of a method
        that takes no part, say. A file and the environment serve many commands."""
        for key, one in self.given.items():
            section, dot, _ = key.partition(".")
            if dot and section in others and one.layer == COMMAND:
                raise InvalidSetting(f"setting {key!r} (from {one.source}): it has no use here ({why}). Leave it out.")

    def plain(self, sections: Collection[str]) -> dict[str, Given]:
        """The keys that lie in none of ``sections``: the method's own."""
        return {key: value for key, value in self.given.items() if key.partition(".")[0] not in sections or "." not in key}


def read_settings(
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Iterable[str] = (),
    repeated: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda _: None,
) -> Settings:
    """Merge the layers: TOML file < environment < ``key=value`` overrides, later overrides winning.

    ``GNOTHI_MODEL__DTYPE`` is ``model.dtype``: two underscores for the dot. ``repeated`` makes settings of the dotted keys of a
    run's file, and nothing of any other.
    """
    merged: dict[str, Given] = {}
    if config is not None:
        values = load_toml(config)
        of_file, layer = (values, WRITTEN) if (of_run := repeated(values)) is None else (of_run, REPEATED)
        merged |= {key: Given(value, str(config), layer) for key, value in of_file.items()}
    for variable, text in sorted((environ or {}).items()):
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in RESERVED_VARIABLES:
            key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            merged[_plain_key(key)] = Given(text, f"environment variable {variable}", ENVIRONMENT)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise InvalidSetting(f"got --set {override!r}, expected --set key=value, as in --set k=10.")
        merged[_plain_key(key.strip())] = Given(text, f"--set {override}", COMMAND)
    return Settings(merged)


def load_toml(config: Path) -> dict[str, Any]:
    """A configuration file by dotted key. Raises InvalidInput."""
    try:
        return flatten(tomllib.loads(config.read_text(encoding="utf-8-sig")))
    except IsADirectoryError as error:
        inside = config / "config.toml"
        hint = f"Is it {inside}?" if inside.exists() else "Check <--config>."
        raise InvalidInput(f"cannot read the configuration file {config}: it is a folder. {hint}") from error
    except OSError as error:
        raise InvalidInput(
            f"cannot read the configuration file {config}: {error.strerror}. {nearest(config)}Check <--config>."
        ) from error
    except TOML_ERRORS as error:
        both = "overwrite" in str(error) or "mutate" in str(error)
        hint = (
            " A name is a value or a table, not both: for signal = X beside [signal], write name = X in the table."
            if both
            else ""
        )
        raise InvalidInput(f"the configuration file {config} is not valid TOML: {error}.{hint}") from error


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys. The ``name`` in a table ``signal`` is what the key ``signal`` says elsewhere: a
    table cannot be a text, too."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[_plain_key(f"{prefix}{name}")] = value
    return flat


def _plain_key(key: str) -> str:
    """``signal.name`` is the signal itself: TOML has no key that is both a text and a table."""
    return key.removesuffix(".name") if f".{key}".endswith(".signal.name") else key


def to_toml(values: Mapping[str, Any]) -> str:
    """Dotted keys and their values as a TOML document, which ``read_settings`` reads back."""
    root: dict[str, Any] = {}
    within = {key[: place + 1] for key in values for place, letter in enumerate(key) if letter == "."}
    for key, value in values.items():
        *path, name = (key if f"{key}." not in within else f"{key}.name").split(".")
        table = root
        for part in path:
            table = table.setdefault(part, {})
        table[name] = _toml_value(value)
    return tomli_w.dumps(root)


def _toml_value(value: Any) -> Any:
    if value is None:
        return "none"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_toml_value(item) for item in value]
    return value

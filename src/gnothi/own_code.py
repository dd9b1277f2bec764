"""Code that is the caller's own: where it stands, whether it has changed, and what is said where it fails."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gnothi.errors import CodeFailed, GnothiError

_PLAIN = (str, bytes, int, float, bool, types.NoneType)
_OTHERS = (str(Path(__file__).parent), sys.prefix, sys.base_prefix)
"""Where the files of Gnothi, of Python and of installed packages are."""


def unwrap(thing: Any) -> Any:
    """What its author wrote: the function that a method, a signal, a model or an index was made of, or the class of an
    object."""
    for key in ("function", "given", "func"):
        if (inner := getattr(thing, key, None)) is not None and inner is not thing:
            return unwrap(inner)
    return thing if isinstance(thing, type | types.FunctionType) else type(thing)


def target_of(thing: Any) -> str:
    """``module:object``, as ``module:function`` names a method."""
    one = unwrap(thing)
    return f"{one.__module__}:{one.__qualname__}"


def thing_of(target: str) -> Any:
    """The object of ``module:object``. Raises what the import raises."""
    path, _, attribute = target.partition(":")
    thing: Any = importlib.import_module(path)
    for part in attribute.split("."):
        thing = getattr(thing, part)
    return thing


def importable(thing: Any) -> bool:
    """Whether another process finds it by its ``module:object``."""
    target = target_of(thing)
    if target.startswith("__main__:"):
        return False
    try:
        return unwrap(thing_of(target)) is unwrap(thing)
    except Exception:  # noqa: BLE001 - a module of anybody's
        return False


def digest(thing: Any) -> str:
    """Changes with the source of what was written, and of the functions, classes and plain values that it names or holds, in
    its own module and in others that no installed package brings; empty for what one brings. What is found only while it runs
    is not seen: by ``getattr``, by an import in a function, in a file that it reads."""
    one = unwrap(thing)
    if not _is_the_callers(one):
        return ""
    parts: list[str] = []
    _hold("", one, one.__module__, parts, set())
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _hold(name: str, one: Any, module: str, parts: list[str], seen: set[int]) -> None:
    if isinstance(one, tuple | list):
        for part in one:
            _hold(name, part, module, parts, seen)
    elif isinstance(one, _PLAIN):
        parts.append(f"{name}={one!r}")
    elif callable(one) and id(code := unwrap(one)) not in seen and (code.__module__ == module or _is_the_callers(code)):
        seen.add(id(code))
        parts.append(_source(code))
        for part in vars(code).values() if isinstance(code, type) else [code]:
            if isinstance(part, types.FunctionType):
                for key, value in _references(part).items():
                    _hold(key, value, module, parts, seen)


def _is_the_callers(one: Any) -> bool:
    try:
        file = inspect.getfile(one)
    except (TypeError, OSError):  # built in, or a class typed at a prompt
        return False
    return bool(file) and not file.startswith(_OTHERS)


def _references(function: types.FunctionType) -> dict[str, Any]:
    """What a function names in its module and, behind a dot, in the caller's other modules; and what it holds: closure and
    defaults."""
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    names = sorted({name for code in codes for name in code.co_names})
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    modules = _callers_modules(values)
    for one in modules:
        behind = {name: vars(one)[name] for name in names if name in vars(one)}
        modules += [other for other in _callers_modules(behind) if other not in modules]
        values |= {f"{one.__name__}.{name}": value for name, value in behind.items()}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not set yet
            values[name] = cell.cell_contents
    return values | {"defaults": function.__defaults__ or ()} | (function.__kwdefaults__ or {})


def _callers_modules(values: dict[str, Any]) -> list[types.ModuleType]:
    return [one for one in values.values() if isinstance(one, types.ModuleType) and _is_the_callers(one)]


def _source(one: Any) -> str:
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):  # typed at a prompt
        code = getattr(one, "__code__", None)
        return f"{code.co_code!r} {code.co_names}" if code else ""


def place_of(error: BaseException) -> str | None:
    """File and line of the caller's own code on the way to the error; None where there is none."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_own(frame)]
    return f"{places[-1][0]}, line {places[-1][1]}" if places else None


def _is_own(frame: types.FrameType) -> bool:
    file = frame.f_code.co_filename
    return frame.f_globals.get("__name__") == "__main__" or not file.startswith((*_OTHERS, "<"))


@contextmanager
def running(what: str) -> Iterator[None]:
    """What the caller's own code raises inside becomes CodeFailed, with ``what`` it is. What Gnothi raises, asked by it for
    something, stays as it is."""
    try:
        yield
    except GnothiError:
        raise
    except Exception as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        own = next((place for place, frame in enumerate(frames) if _is_own(frame)), len(frames))
        ours = any(frame.f_code.co_filename.startswith(_OTHERS[0]) for frame in frames[own:])
        if ours or own == len(frames):
            raise
        raise CodeFailed(what, error, place_of(error)) from error

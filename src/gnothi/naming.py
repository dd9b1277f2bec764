"""How a message names a parameter, so that whoever reads it can give it: ``index=PATH`` in Python, ``--index PATH`` on the
command line.

    raise InvalidSetting(f"method 'rag' got no index: give {parameter('index', 'PATH')}.")

The message holds marks; an error shows itself in Python's words, and the command line in its own.
"""

from __future__ import annotations

import re

_PARAMETER, _SETTING, _VALUE, _END = "\ue000", "\ue001", "\ue002", "\ue003"
_MARKED = re.compile(f"([{_PARAMETER}{_SETTING}])([^{_VALUE}{_END}]*)(?:{_VALUE}([^{_END}]*))?{_END}")


def parameter(name: str, value: object = None) -> str:
    """A parameter of a function, which is a flag of a command. ``value`` is an example; True for a switch."""
    return f"{_PARAMETER}{name}{'' if value is None else f'{_VALUE}{value}'}{_END}"


def setting(key: str, value: object = "...") -> str:
    """A setting of a method, a model or an index (``model.dtype``), with an example for its value."""
    return f"{_SETTING}{key}{_VALUE}{value}{_END}"


def in_python(text: str) -> str:
    """``index=PATH``, ``anyway=True``, ``k=5``, ``model_settings={'dtype': ...}``."""
    return _MARKED.sub(lambda found: _python(found[1], found[2], found[3]), text)


def on_the_command_line(text: str) -> str:
    """``--index PATH``, ``--anyway``, ``--set k=5``, ``--set model.dtype=...``."""
    return _MARKED.sub(lambda found: _flag(found[1], found[2], found[3]), text)


def parameters(text: str) -> tuple[str, ...]:
    """Names of the parameters and settings that a message speaks of, in order."""
    return tuple(dict.fromkeys(found[2] for found in _MARKED.finditer(text)))


def _python(kind: str, name: str, value: str | None) -> str:
    section, dot, key = name.partition(".")
    if kind == _SETTING and dot and section in ("model", "index"):
        return f"{section}_settings={{'{key}': {value}}}"
    return name if value is None else f"{name}={value}"


def _flag(kind: str, name: str, value: str | None) -> str:
    if kind == _SETTING:
        return f"--set {name}={value}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value in (None, "True") else f"{flag} {value}"

"""How a message names a parameter, so that whoever reads it can give it.

    raise InvalidSetting("method 'rag' got no index: give <--index PATH>.")

In Python that reads ``give index=PATH``, on the command line ``give --index PATH``; ``<--set k=5>`` reads ``k=5`` and
``--set k=5``, ``<--anyway>`` reads ``anyway=True`` and ``--anyway``.
"""

from __future__ import annotations

import re

_MARKED = re.compile(r"<--([a-z][a-z-]*)(?: ([^<>]*))?>")
_SWITCHES = frozenset({"anyway"})
_SECTIONS = ("model", "index")


def in_python(text: str) -> str:
    """``index=PATH``, ``anyway=True``, ``k=5``, ``model_settings={'dtype': ...}``."""
    return _MARKED.sub(lambda found: _python(found[1], found[2]), text)


def on_the_command_line(text: str) -> str:
    """``--index PATH``, ``--anyway``, ``--set k=5``, ``--set model.dtype=...``."""
    return _MARKED.sub(lambda found: found[0][1:-1], text)


def parameters(text: str) -> tuple[str, ...]:
    """Names of the parameters and settings that a message speaks of, in order."""
    return tuple(dict.fromkeys(_name(found[1], found[2]) for found in _MARKED.finditer(text)))


def _name(flag: str, value: str | None) -> str:
    return (value or "").partition("=")[0] if flag == "set" else flag.replace("-", "_")


def _python(flag: str, value: str | None) -> str:
    name = _name(flag, value)
    if flag != "set":
        value = "True" if value is None and flag in _SWITCHES else value
        return name if value is None else f"{name}={value}"
    section, dot, key = name.partition(".")
    if dot and section in _SECTIONS:
        return f"{section}_settings={{'{key}': {(value or '').partition('=')[2]}}}"
    return value or ""

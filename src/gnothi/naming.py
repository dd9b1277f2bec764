"""How a message names a parameter, so that whoever reads it can give it.

    raise InvalidSetting("method 'rag' got no index: give <--index PATH>.")

In Python that reads ``give index=PATH``, on the command line ``give --index PATH``; ``<--set form=simple>`` reads
``form='simple'`` and ``--set form=simple``, ``<--ignore-mismatch>`` reads ``ignore_mismatch=True`` and ``--ignore-mismatch``.
"""

from __future__ import annotations

import re

_MARKED = re.compile(r"<--([a-z][a-z-]*)(?: ([^<>]*))?>")
_SWITCHES = frozenset({"ignore-mismatch", "skip-invalid"})
_SECTIONS = ("model", "index")
_NO_TEXT = re.compile(r"\.\.\.|[A-Z][A-Z0-9_ .-]*|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?|")


def in_python(text: str) -> str:
    """``index=PATH``, ``ignore_mismatch=True``, ``k=5``, ``model_settings={'dtype': ...}``."""
    return _MARKED.sub(lambda match: _python(match[1], match[2]), text)


def on_the_command_line(text: str) -> str:
    """``--index PATH``, ``--ignore-mismatch``, ``--set k=5``, ``--set model.dtype=...``. What a message repeats of a file or a
    server does not steer the terminal: letters that show nothing are replaced."""
    text = _MARKED.sub(lambda match: match[0][1:-1], text)
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def parameters(text: str) -> tuple[str, ...]:
    """Names of the parameters and settings that a message speaks of, in order."""
    return tuple(dict.fromkeys(_name(match[1], match[2]) for match in _MARKED.finditer(text)))


def _name(flag: str, value: str | None) -> str:
    return (value or "").partition("=")[0] if flag == "set" else flag.replace("-", "_")


def _python(flag: str, value: str | None) -> str:
    name = _name(flag, value)
    if flag != "set":
        value = "true" if value is None and flag in _SWITCHES else value
        return name if value is None else f"{name}={_literal(value)}"
    literal = _literal((value or "").partition("=")[2])
    section, dot, key = name.partition(".")
    if section == "server" and dot:
        return f"{key}={literal}"
    return f"{section}_settings={{'{key}': {literal}}}" if dot and section in _SECTIONS else f"{name}={literal}"


def _literal(text: str) -> str:
    """As Python writes it; a word in capitals, which stands for something, as it is."""
    if text in ("true", "false", "none"):
        return text.capitalize()
    return text if _NO_TEXT.fullmatch(text) else repr(text)

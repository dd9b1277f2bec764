"""Cells of a table that hold a list: as JSON, Python and numpy write it."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from itertools import pairwise
from typing import Any

_ARRAY = re.compile(r"array\((\[.*?\])(?:, *dtype=\w+)?\)", re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:\|+|///|\n)\s*")


def opened(cell: str) -> Any:
    """The list or the object that the cell is, else its text."""
    text = cell.strip()
    if not (text.startswith(("[", "{", "array(")) and text.endswith(("]", "}", ")"))):
        return cell
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _of_python(_ARRAY.sub(r"\1", text))
    return value if isinstance(value, list | dict) else cell


def is_broken_list(cell: str) -> bool:
    """Whether a text looks like a list and is none that can be read."""
    return cell.startswith("[") and cell.endswith("]")


def separated(cell: str, many: bool) -> list[str]:
    """The parts of a text that may be several answers. ``many``: the column's name says that it holds several."""
    parts = _BETWEEN.split(cell)
    return parts if len(parts) > 1 or not many else re.split(r"\s*;\s*", cell)


def _of_python(text: str) -> Any:
    """A list as Python writes it, or as numpy writes an array of text: without commas, which Python would take for one
    text."""
    try:
        strings = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
        if [strings[0], strings[-1]] == ["[", "]"] and len(strings) > 3 and all(part[-1] in "\"'" for part in strings[1:-1]):
            return [ast.literal_eval(part) for part in strings[1:-1]]
        if any(a[-1] in "\"'" and b[0] in "\"'" for a, b in pairwise(strings)):
            return None
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, IndexError, RecursionError, MemoryError, tokenize.TokenError):
        return None

"""Records read from JSON: each field is of the type that its dataclass says, or it is damage."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def typed(type_: Any, value: Any) -> Any:
    """``value``, of JSON, as the type that it had; fields of a record that are missing keep their defaults, others that it does
    not have are left out. Raises KeyError, TypeError or ValueError."""
    if is_dataclass(type_) and isinstance(type_, type):
        return type_(
            **{item.name: typed(_types(type_)[item.name], value[item.name]) for item in fields(type_) if item.name in value}
        )
    if get_origin(type_) is tuple:
        of = get_args(type_)
        items = [(of[0], item) for item in value] if of[-1] is Ellipsis else list(zip(of, value, strict=True))
        return tuple(typed(kind, item) for kind, item in items)
    if isinstance(type_, UnionType):
        return None if value is None else typed(get_args(type_)[0], value)
    if type_ is float:
        return math.nan if value is None else float(value)
    if not isinstance(value, get_origin(type_) or type_):
        raise ValueError(f"{value!r:.60} is not of type {type_.__name__}")
    return value


@cache
def _types(record: type) -> dict[str, Any]:
    return get_type_hints(record)

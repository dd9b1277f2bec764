"""Fields of a request by which models behind an API are told to think, or not to. Servers understand different ones and take
others without a word, so each is tried in turn, and what the reply shows counts. (What chat templates take: ``switches``.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnothi.models.switches import Thinking

Fields = Mapping[str, Any]

_OFF: tuple[Fields, ...] = (
    {"reasoning_effort": "none"},
    {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    {"thinking": {"type": "disabled"}},
    {"reasoning": {"enabled": False, "effort": "none"}},
    {"enable_thinking": False},
)
_ON: tuple[Fields, ...] = (
    {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
    {"reasoning_effort": "medium"},
    {"thinking": {"type": "enabled"}},
    {"reasoning": {"enabled": True}},
    {"enable_thinking": True},
)
_NAMES = frozenset(name for fields in (*_OFF, *_ON) for name in fields)


def ladder(asked: Thinking, thinks: bool) -> Sequence[Fields]:
    """Fields to try, the likeliest first, of a model that does or does not think where nothing is said."""
    if asked == "off":
        return _OFF if thinks else ()
    if asked == "on":
        return () if thinks else _ON
    return (
        {"reasoning_effort": asked},
        {"chat_template_kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": asked}},
        {"reasoning": {"effort": asked}},
    )


def told_by_hand(extra: Fields) -> bool:
    """Whether the fields that a user sends with every request say it already."""
    return not _NAMES.isdisjoint(extra)


def shown(fields: Fields) -> str:
    """Fields as a user would write them."""
    parts = (f"{key}={shown(value) if isinstance(value, Mapping) else value}" for key, value in fields.items())
    return ", ".join(part.replace("=True", "=true").replace("=False", "=false") for part in parts)

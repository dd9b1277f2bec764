"""Fields of a request that switch the thinking of models behind an API on or off. Servers understand different ones and ignore
others, so each is tried in turn, and what the reply shows counts. (What chat templates take: ``switches``.)"""

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


def ladder(thinking: Thinking, thinks: bool) -> Sequence[Fields]:
    """Fields to try, the likeliest first, of a model that does or does not think where nothing is said."""
    if thinking == "off":
        return _OFF if thinks else ()
    if thinking == "on":
        return () if thinks else _ON
    return (
        {"reasoning_effort": thinking},
        {"chat_template_kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": thinking}},
        {"reasoning": {"effort": thinking}},
    )


def sets_thinking(extra: Fields) -> bool:
    """Whether the fields that a user sends with every request already switch thinking."""
    return not _NAMES.isdisjoint(extra)


def as_text(fields: Fields) -> str:
    """Fields as a user would write them."""
    parts = (f"{key}={as_text(value) if isinstance(value, Mapping) else value}" for key, value in fields.items())
    return ", ".join(part.replace("=True", "=true").replace("=False", "=false") for part in parts)

"""What a message says and what it only thinks: in fields of its own, in typed parts of its content, or between marks in its
text. Servers differ; ``FIELDS`` and the kinds of parts are the one list of how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnothi.models.thoughts import tell_apart

FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking", "thinking_blocks", "thought")
"""Fields of a message, or of a choice of the completions endpoint, that hold thoughts. Some servers fill two with the same."""
_TEXTS = ("text", "thinking", "reasoning", "summary", "content", "reasoning_content")
"""Where a part of a message holds its text."""
_THOUGHTS = ("think", "reason", "thought", "analysis")
"""What the type of a part has in it that is no answer."""
MARKED, ENDED = "marks in the text", "the text before a closing mark"
"""Places of thoughts in the text itself: after an opening mark; from its beginning, where the prompt has opened the block."""


@dataclass(frozen=True, slots=True)
class Split:
    """``text`` is the answer. ``place`` says where the thought stood, empty where there was none. ``closed`` is False where
    the thought never came to an end, so that there is no answer."""

    text: str
    thought: str = ""
    place: str = ""
    closed: bool = True


def split_thought(message: Mapping[str, Any]) -> Split | None:
    """None for a message that holds neither a text nor nothing, but something else."""
    content = message.get("content", message.get("text"))
    if content is None:
        content = message.get("refusal") or ""
    parted = _parted(content)
    if parted is None:
        return None
    text, thought = parted
    place = "parts of the content" if thought else ""
    if not thought:
        place, thought = next(((name, found) for name in FIELDS if (found := _texts(message.get(name)).strip())), ("", ""))
    told = tell_apart(text)
    if not told.thinks:
        # After a thought, chat templates leave lines empty; a stop string in them is not the answer's end.
        return Split(text.lstrip() if thought else text, thought, place)
    if told.thought:
        place = place or (MARKED if told.opened else ENDED)
        thought = "\n".join(filter(None, (thought, told.thought)))
    return Split(told.answer, thought, place, told.closed)


def _parted(content: object) -> tuple[str, str] | None:
    """Answer and thought of a content: a text, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        return None
    answer: list[str] = []
    thought: list[str] = []
    for part in content:
        if isinstance(part, str):
            answer.append(part)
        elif isinstance(part, Mapping):
            kind = str(part.get("type") or "").lower()
            (thought if any(one in kind for one in _THOUGHTS) else answer).append(_texts(part))
        else:
            return None
    return "".join(answer), "".join(thought).strip()


def _texts(value: object) -> str:
    """All texts of a part, or of a list of parts, in order."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_texts, value))
    if isinstance(value, Mapping):
        return "".join(_texts(value[name]) for name in _TEXTS if name in value)
    return ""

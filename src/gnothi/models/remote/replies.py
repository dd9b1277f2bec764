"""From the JSON of a server to texts with tokens. Servers differ in what they leave out; nothing is taken for granted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gnothi.errors import UsageError
from gnothi.models.remote import tokens as measuring
from gnothi.models.thoughts import end_of_turn, split_reply, without_header
from gnothi.types import Finish, Token

# What a message says and what it only thinks: in fields of its own, in typed parts of its content, or between marks in its
# text. Servers differ; ``FIELDS`` and the kinds of parts are the one list of how.
FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking", "thinking_blocks", "thought")
"""Fields of a message, or of a choice of the completions endpoint, that hold thoughts. Some servers fill two with the same."""
_TEXTS = ("text", "value", "thinking", "reasoning", "summary", "content", "reasoning_content", "refusal")
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
    if content in (None, "", []):
        content = message.get("refusal") or ""
    parted = _parted(content)
    if parted is None:
        return None
    text, thought = without_header(parted[0]), parted[1]
    place = "parts of the content" if thought else ""
    if not thought:
        place, thought = next(((name, found) for name in FIELDS if (found := _texts(message.get(name)).strip())), ("", ""))
    reply = split_reply(text)
    if not reply.thinks:
        # After a thought, chat templates leave lines empty; a stop string in them is not the answer's end.
        return Split(text.lstrip() if thought else text, thought, place)
    if reply.thought:
        place = place or (MARKED if reply.opened else ENDED)
        thought = "\n".join(filter(None, (thought, reply.thought)))
    return Split(reply.answer, thought, place, reply.closed)


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


WITHHELD = "the server withheld the reply: its content filter blocked it. Word the question differently, or use another model."
_FILTERS = frozenset(
    {"content_filter", "content_filtered", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
    | {"guardrail_intervened", "sensitive", "refusal"}
)
"""Reasons of an end that are a filter's."""
_LIMITS = frozenset(
    {"length", "max_tokens", "model_length", "max_length", "max_output_tokens", "token_limit", "model_context_window_exceeded"}
)
_BROKEN = frozenset({"error", "insufficient_system_resource", "abort", "aborted"})
"""Reasons of an end that may be another at the next try."""
_CALLS = frozenset({"tool_calls", "tool_call", "function_call", "tool_use", "malformed_function_call"})
_COMPLETE = re.compile("^$|stop|eos|end|complete|finish|done")
"""What a reason says where nothing more was to come."""
HIDDEN = 16
"""A reply of so many more tokens than it has bytes was thought over, wherever the thoughts are: a token has a byte at least."""


class InvalidReply(Exception):
    """A response that is no answer to the request; the message says what is wrong with it."""


class OtherShape(InvalidReply):
    """A response in the form of another interface: the next one will have it, too."""


class Streamed(OtherShape):
    """A response in chunks, which were not asked for."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Tokens as the server counts them; those that were thought are among the generated ones. ``unexplained`` are those of its
    total that are neither read nor generated: some servers count thoughts there alone."""

    prompt_tokens: int
    generated_tokens: int
    thought_tokens: int = 0
    unexplained: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation. ``tokens`` is None where the server gave no log-probabilities that can be used; ``lacking`` says why,
    where it gave some. ``thought`` stood at ``place``; ``closed`` is False where it never ended. ``before`` is how many tokens
    came before the answer, where the server shows them; ``after`` is what a special token ended the answer with."""

    text: str
    tokens: tuple[Token, ...] | None
    finish: Finish
    thought: str = ""
    place: str = ""
    closed: bool = True
    lacking: str = ""
    floors: int = 0
    before: int | None = None
    after: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    choices: tuple[Choice, ...]
    bill: Bill | None

    @property
    def place(self) -> str:
        """Where thoughts were seen; empty where none were."""
        for choice in self.choices:
            if choice.thought or not choice.closed:
                return choice.place or MARKED
        return "the bill alone" if self.bill is not None and self.bill.thought_tokens else ""

    @property
    def hidden(self) -> bool:
        """Whether the bill has tokens that stand nowhere in the reply."""
        texts = sum(len((choice.text + choice.after + choice.thought).encode("utf-8", "replace")) for choice in self.choices)
        counted = 0 if self.bill is None else self.bill.generated_tokens + self.bill.unexplained
        return counted > texts + HIDDEN * len(self.choices)


def read(data: object, stops: bool) -> Reply:
    """The reply of either endpoint, choices in the order of their index. ``stops`` says whether stop strings were sent.

    Raises InvalidReply, or UsageError for a reply that the server withholds.
    """
    charged = bill(data)
    thinks = charged is not None and charged.thought_tokens > 0
    choices = sorted(_choices(data), key=lambda choice: _whole(choice.get("index")))
    return Reply(tuple(_choice(choice, stops, thinks) for choice in choices), charged)


def bill(data: object) -> Bill | None:
    """What the server says it counted, None where it does not. Where it counts thoughts apart, they are added."""
    usage = data.get("usage") if isinstance(data, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    if not isinstance(prompt, int) or isinstance(prompt, bool) or not prompt:  # no prompt has none: nobody counted
        return None
    read_in = _whole(prompt)
    generated = _whole(usage.get("completion_tokens", usage.get("output_tokens")))
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    thought = max(_whole(one.get("reasoning_tokens")) for one in (usage, details) if isinstance(one, Mapping))
    apart = max(0, _whole(usage.get("total_tokens")) - read_in - generated)
    if thought and thought == apart:  # xAI's generated tokens are those of the answer
        return Bill(read_in, generated + thought, thought)
    return Bill(read_in, generated, thought, apart)


def _choices(data: object) -> list[Mapping[str, Any]]:
    if not isinstance(data, Mapping):
        raise OtherShape(f"expected a JSON object, got {_shortened(data)}")
    if data.get("error"):
        raise InvalidReply(f"the server reports {_shortened(data['error'])}")
    choices = data.get("choices")
    if not choices and _filtered(data):
        raise UsageError(WITHHELD)
    if "choices" not in data:
        raise OtherShape(f"expected choices, got {_shortened(dict(data))}")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, Mapping) for choice in choices):
        raise InvalidReply(f"expected choices, got {_shortened(dict(data))}")
    return choices


def _filtered(value: object) -> bool:
    """Whether something inside says that a filter stepped in."""
    if isinstance(value, Mapping):
        reasons = (value.get("finish_reason"), value.get("blockReason"), value.get("block_reason"))
        if value.get("filtered") is True or any(isinstance(reason, str) and reason for reason in reasons[1:]):
            return True
        if isinstance(reasons[0], str) and _FILTERS & _words(reasons[0]):
            return True
        return any(map(_filtered, value.values()))
    return isinstance(value, list) and any(map(_filtered, value))


def _words(reason: str) -> frozenset[str]:
    """A reason and, of one like Google's ``content_filter: RECITATION``, its parts."""
    return frozenset(part.strip() for part in (reason.lower(), *reason.lower().split(":")))


def _choice(choice: Mapping[str, Any], stops: bool, thinks: bool) -> Choice:
    message = choice.get("message")
    reason = str(choice.get("finish_reason") or "").lower()
    if _FILTERS & _words(reason):
        raise UsageError(WITHHELD)
    if reason in _BROKEN or choice.get("error"):
        raise InvalidReply(f"the reply broke off: {_shortened(choice.get('error') or reason)}")
    if not isinstance(message, Mapping) and not isinstance(choice.get("text"), str):
        if _filtered(choice.get("content_filter_results")):
            raise UsageError(WITHHELD)
        raise InvalidReply(f"expected a text, got {_shortened(dict(choice))}")
    parts = split_thought(message if isinstance(message, Mapping) else choice)
    if parts is None:
        raise OtherShape(f"expected a text, got {_shortened(dict(choice))}")
    if not parts.text:
        called = isinstance(message, Mapping) and (message.get("tool_calls") or message.get("function_call"))
        if called or _CALLS & _words(reason):
            raise UsageError("the server sent a tool call instead of text, though it was offered no tool. Ask another model.")
        if not (parts.thought or reason in _LIMITS or _COMPLETE.search(reason)):
            raise InvalidReply(f"the reply broke off: {_shortened(reason)}")
    thought = bool(parts.thought) or not parts.closed or thinks
    end = end_of_turn(parts.text)
    text, after = parts.text[:end], parts.text[end:]
    numbers = measuring.measured(choice.get("logprobs"), text, thought)
    return Choice(
        text,
        numbers.tokens,
        "eos" if after else _finish(reason, choice, stops),
        parts.thought,
        parts.place,
        parts.closed,
        numbers.lacking,
        numbers.floors,
        numbers.thought,
        after,
    )


def _finish(reason: str, choice: Mapping[str, Any], stops: bool) -> Finish:
    """Most servers say ``stop`` for both a stop string and the model's own end; vLLM's ``stop_reason`` tells them apart.
    Where nothing does, a stop string is taken for the cause if there was any."""
    if reason in _LIMITS:
        return "length"
    if "stop_reason" in choice:
        return "stop" if isinstance(choice["stop_reason"], str) else "eos"
    return "stop" if stops else "eos"


def cut(choice: Choice, place: Callable[[str], int | None], finish: Finish) -> Choice:
    """``choice`` up to where ``place`` says its text ends (None: unchanged)."""
    end = place(choice.text)
    if end is None:
        return choice
    tokens = None if choice.tokens is None else measuring.first(choice.tokens, end)
    return replace(choice, text=choice.text[:end], tokens=tokens, finish=finish)


def without_start(choice: Choice, length: int) -> Choice:
    """``choice`` without its first ``length`` characters."""
    tokens = None if choice.tokens is None else measuring.after(choice.tokens, length)
    return replace(choice, text=choice.text[length:], tokens=tokens)


def _whole(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _shortened(value: object, limit: int = 200) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"

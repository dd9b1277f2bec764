"""A server with a habit: what it does to replies and requests. The table of habits is ``tests/models/habits.py``.

The model behind knows one answer, ``ANSWER``, and, if it thinks, thinks of another first; a stop string ends its thought as it
would end an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gnothi.models.remote.probing import BEGUN
from tests.models.openai_api import BadRequest

ANSWER = "Ann Bell"
MORE = "\nQuestion: and who else?"
"""What the model goes on with where no stop string is sent."""
THOUGHT = "Who was it?\nOtto Lind? So the answer is Otto Lind. No, it was somebody else."
LOGPROB = -0.5
Body = Mapping[str, Any]
Never: Callable[[Body], bool] = lambda _: False  # noqa: E731
Always: Callable[[Body], bool] = lambda _: True  # noqa: E731


def is_trial(body: Body) -> bool:
    return "Say yes." in str(body)


@dataclass(frozen=True)
class Habit:
    """``thinks`` says for which requests the model thinks, ``place`` where its thought goes; ``covers``: log-probabilities are
    of the thought, too. ``refuse`` raises for a request. ``numbers`` are log-probabilities of a reply's tokens; ``mend``
    changes the reply as a whole; ``models`` lists models. ``settings`` are the user's.

    What is expected: ``without`` names fields that are left out; ``thinking`` is a part of what is told of it; ``logprobs``:
    the answers have some; ``error`` is a part of the message where questions fail."""

    name: str
    thinks: Callable[[Body], bool] = Never
    place: str = "tags"
    covers: bool = False
    refuse: Callable[[Body], None] = lambda _: None
    numbers: Callable[[Body, int], list[Any]] = lambda _, count: [LOGPROB] * count
    mend: Callable[[dict[str, Any], Body], Any] = lambda reply, _: reply
    models: Any = None
    continues: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    thinking: str = ""
    logprobs: bool = True
    error: str = ""


class Api:
    """Answers as a server of that habit."""

    def __init__(self, habit: Habit) -> None:
        self.habit = habit

    async def answer(self, path: str, body: Body) -> Any:
        path = path.partition("?")[0]
        if path.endswith(("/models", "/props")) and self.habit.name == "a page":
            return b"<!doctype html><html>"
        if path.endswith("/models"):
            if isinstance(self.habit.models, BadRequest):
                raise self.habit.models
            return self.habit.models or {"object": "list", "data": [{"id": "x", "owned_by": "somebody"}]}
        if not path.endswith("/chat/completions"):
            raise BadRequest("Not Found", status=404)
        self.habit.refuse(body)
        return self.habit.mend(self._reply(body), body)

    def _reply(self, body: Body) -> dict[str, Any]:
        text, so_far = self._text(body), ""
        thought = THOUGHT if self.habit.thinks(body) else ""
        limit = body.get("max_tokens", body.get("max_completion_tokens", 16))
        finish, words = "stop", len(pieces(thought + text))
        for stop in body.get("stop") or ():
            if stop in thought:
                thought, text, finish, so_far = thought.partition(stop)[0], "", "stop", "open"
            text = text.partition(stop)[0]
        if thought and limit < 30:
            text, finish, so_far = "", "length", "open"
        choices = [self._choice(row, thought, text, finish, so_far, body) for row in range(body.get("n", 1))]
        read = len(str(body["messages"])) // 4
        details = {"completion_tokens_details": {"reasoning_tokens": 0}}
        written = words * len(choices)
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written, **details}
        return {"id": "1", "object": "chat.completion", "created": 0, "model": "x", "choices": choices, "usage": usage}

    def _text(self, body: Body) -> str:
        last = body["messages"][-1]
        if last["role"] == "assistant":
            begun = str(last["content"])
            if not self.habit.continues:
                return f"Sure. {ANSWER}"
            return "en, twelve" if begun == BEGUN else " Bell" + MORE if begun.endswith("Ann") else f" {ANSWER}{MORE}"
        if is_trial(body):
            return "Yes."
        if "Name a colour." in last["content"]:
            return "Blue"
        return ("Bell" if "\nIt was Ann\n" in last["content"] else ANSWER) + MORE

    def _choice(self, row: int, thought: str, text: str, finish: str, so_far: str, body: Body) -> dict[str, Any]:
        shown, message, whole = text, {"role": "assistant"}, text
        if thought or so_far:
            shown, whole = PLACES[self.habit.place](message, thought, text, bool(so_far))
        message["content"] = shown
        choice: dict[str, Any] = {"index": row, "message": message, "finish_reason": finish, "logprobs": None}
        if body.get("logprobs"):
            said = pieces(whole if self.habit.covers else text)
            numbers = self.habit.numbers(body, len(said))
            entries = [
                {"token": name, "bytes": list(name.encode()), "logprob": number, "top_logprobs": []}
                for name, number in zip(said, numbers, strict=True)
            ]
            choice["logprobs"] = {"content": entries}
        return choice


def pieces(text: str) -> list[str]:
    """Tokens: words, each with the white space before it."""
    found: list[str] = []
    for letter in text:
        if not found or (letter.isspace() and not found[-1].isspace()):
            found.append(letter)
        else:
            found[-1] += letter
    return found


# --- where thoughts go ----------------------------------------------------------------------------------------------------


def _marks(opens: str, closes: str) -> Callable[..., tuple[Any, str]]:
    def place(_: Any, thought: str, text: str, open_: bool) -> tuple[Any, str]:
        whole = f"{opens}{thought}" if open_ else f"{opens}{thought}{closes}{text}"
        return whole, whole

    return place


def _fields(*names: str) -> Callable[..., tuple[Any, str]]:
    def place(message: dict[str, Any], thought: str, text: str, _: bool) -> tuple[Any, str]:
        for name in names:
            message[name] = [{"type": "reasoning.text", "text": thought}] if name == "reasoning_details" else thought
        return text or None, f"<think>{thought}</think>\n\n{text}"

    return place


def _parts(thinking: Callable[[str], Any]) -> Callable[..., tuple[Any, str]]:
    def place(_: Any, thought: str, text: str, __: bool) -> tuple[Any, str]:
        parts = [{"type": "thinking", "thinking": thinking(thought)}, *([{"type": "text", "text": text}] if text else [])]
        return parts, f"[THINK]{thought}[/THINK] {text}"

    return place


PLACES: dict[str, Callable[..., tuple[Any, str]]] = {
    "tags": _marks("<think>\n", "\n</think>\n\n"),
    "closing tag": _marks("", "\n</think>\n\n"),
    "brackets": _marks("[THINK]", "[/THINK]"),
    "channels": _marks("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "seed": _marks("<seed:think>", "</seed:think>"),
    "unknown marks": _marks("<inner_thoughts>", "</inner_thoughts>"),
    "two blocks": _marks("<think>First.</think>\n<think>", "</think>\n"),
    "nested": _marks("<think>They write <think>so</think>: ", "</think>\n"),
    "reasoning_content": _fields("reasoning_content"),
    "reasoning": _fields("reasoning"),
    "reasoning_details": _fields("reasoning_details"),
    "two fields": _fields("reasoning", "reasoning_details"),
    "parts of parts": _parts(lambda thought: [{"type": "text", "text": thought}]),
    "parts": _parts(lambda thought: thought),
    "nowhere": lambda _, __, text, ___: (text, text),
}


def thinks_unless(**off: Any) -> Callable[[Body], bool]:
    """Unless told by these fields; inside mappings, one of them is enough."""

    def thinks(body: Body) -> bool:
        for name, value in off.items():
            given = body.get(name)
            if isinstance(value, dict) and isinstance(given, Mapping):
                if any(given.get(key) == one for key, one in value.items()):
                    return False
            elif given == value:
                return False
        return True

    return thinks


# --- refusals -------------------------------------------------------------------------------------------------------------


def refuse(
    message: Any,
    *fields: str,
    param: str | None = None,
    status: int = 400,
    body: Any = None,
    when: Callable[[Body], bool] = Always,
) -> Callable[[Body], None]:
    """Refuse requests that hold one of the fields (``n``: more than one) with this message, or this whole ``body``."""

    def refusing(request: Body) -> None:
        found = [name for name in fields if name in request and (name != "n" or request["n"] > 1)]
        if found and when(request):
            error = BadRequest(message, param, status)
            if body is not None:
                error.body = body(found) if callable(body) else body
            raise error

    return refusing


def begun(message: str, status: int = 400) -> Callable[[Body], None]:
    def refusing(request: Body) -> None:
        if request["messages"][-1]["role"] == "assistant":
            raise BadRequest(message, status=status)

    return refusing


def extras(found: list[str]) -> list[dict[str, Any]]:
    return [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"} for name in found]


# --- replies as a whole ---------------------------------------------------------------------------------------------------


def usage(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable[[dict[str, Any], Body], Any]:
    """``change`` takes what is counted and the first message."""

    def mend(reply: dict[str, Any], _: Body) -> Any:
        return {**reply, "usage": change(reply["usage"], reply["choices"][0]["message"])}

    return mend


def instead(make: Callable[[Body], Any]) -> Callable[[dict[str, Any], Body], Any]:
    """Of questions; the trial is answered as usual."""
    return lambda reply, body: make(body) if MORE.strip() and not is_trial(body) and "colour" not in str(body) else reply


def inside(error: Mapping[str, Any], name: str) -> Callable[[dict[str, Any], Body], Any]:
    return lambda reply, body: {"error": error} if name in body else reply


def first_choice(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any], Body], Any]:
    def mend(reply: dict[str, Any], body: Body) -> Any:
        if not is_trial(body):
            for choice in reply["choices"]:
                change(choice)
        return reply

    return mend


def said_with(change: Callable[[str], str]) -> Callable[[dict[str, Any], Body], Any]:
    def mend(reply: dict[str, Any], _: Body) -> Any:
        for choice in reply["choices"]:
            choice["message"]["content"] = change(choice["message"]["content"] or "")
        return reply

    return mend


def begins_blank(reply: dict[str, Any], body: Body) -> Any:
    """The model's first token is an empty line, wherever nothing is begun."""
    if is_trial(body) or body["messages"][-1]["role"] == "assistant":
        return reply
    stopped = any(stop.startswith("\n") for stop in body.get("stop") or ())
    for choice in reply["choices"]:
        entries = (choice["logprobs"] or {}).get("content")
        if entries is not None:
            entries[:] = [] if stopped else [{**entries[0], "token": "\n", "bytes": [10]}, *entries]
        choice["message"]["content"] = "" if stopped else "\n" + choice["message"]["content"]
    return reply


def cut_in_thought(reply: dict[str, Any], body: Body) -> Any:
    if not is_trial(body):
        for choice in reply["choices"]:
            choice["message"]["content"] = choice["message"]["content"].partition("\n</think>")[0]
            choice["finish_reason"] = "length"
    return reply


def billed(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    return {**counted, "completion_tokens_details": {"reasoning_tokens": 12}}


def beside(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    total = counted["prompt_tokens"] + 3 + 40
    return {**counted, "completion_tokens": 3, "total_tokens": total, "completion_tokens_details": {"reasoning_tokens": 40}}


def more_than_it_shows(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    return {**counted, "completion_tokens": 90, "total_tokens": counted["prompt_tokens"] + 90}


def tempered(body: Body, count: int) -> list[Any]:
    temperature = body["temperature"] or 1.0
    return [LOGPROB / temperature] * count


def certain_if_greedy(body: Body, count: int) -> list[Any]:
    return [LOGPROB if body["temperature"] else 0.0] * count


def last_is_none(body: Body, count: int) -> list[Any]:
    return [*[LOGPROB] * (count - 1), LOGPROB if is_trial(body) else None]


def raw_inside(found: list[str]) -> dict[str, Any]:
    inner = json.dumps({"error": {"message": f"Unsupported parameter: '{found[0]}'", "param": found[0]}})
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner, "provider_name": "P"}}}


def listed(found: list[str]) -> list[Any]:
    said = "; ".join(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in found)
    return [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]

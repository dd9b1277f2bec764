"""Habits of servers that speak OpenAI's protocol, one table: what each does to replies and requests, and what becomes of it.

The model behind knows one answer, ``ANSWER``, and, if it thinks, thinks of another first; a stop string ends its thought as it
would end an answer. Every habit is one that a server was seen to have; names say which way it differs from the plain one."""

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
    changes the reply as a whole. ``settings`` are the user's.

    What is expected: ``without`` names fields that are left out; ``thinking`` is a part of what is told of it; ``logprobs``:
    the answers have some; ``error`` is a part of the message where questions fail."""

    name: str
    thinks: Callable[[Body], bool] = Never
    place: str = "tags"
    covers: bool = False
    refuse: Callable[[Body], None] = lambda _: None
    numbers: Callable[[Body, int], list[Any]] = lambda _, count: [LOGPROB] * count
    mend: Callable[[dict[str, Any], Body], Any] = lambda reply, _: reply
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
            return {"object": "list", "data": [{"id": "x", "owned_by": "somebody"}]}
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


def _billed(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    return {**counted, "completion_tokens_details": {"reasoning_tokens": 12}}


def _beside(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    total = counted["prompt_tokens"] + 3 + 40
    return {**counted, "completion_tokens": 3, "total_tokens": total, "completion_tokens_details": {"reasoning_tokens": 40}}


def _more_than_it_shows(counted: dict[str, Any], _: Any) -> dict[str, Any]:
    return {**counted, "completion_tokens": 90, "total_tokens": counted["prompt_tokens"] + 90}


def _tempered(body: Body, count: int) -> list[Any]:
    temperature = body["temperature"] or 1.0
    return [LOGPROB / temperature] * count


def _certain_if_greedy(body: Body, count: int) -> list[Any]:
    return [LOGPROB if body["temperature"] else 0.0] * count


def _last_is_none(body: Body, count: int) -> list[Any]:
    return [*[LOGPROB] * (count - 1), LOGPROB if is_trial(body) else None]


def _raw(found: list[str]) -> dict[str, Any]:
    inner = json.dumps({"error": {"message": f"Unsupported parameter: '{found[0]}'", "param": found[0]}})
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner, "provider_name": "P"}}}


def _listed(found: list[str]) -> list[Any]:
    said = "; ".join(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in found)
    return [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]


PLAIN_DETAILS = usage(_billed)
OFF = "switched off by "
STUCK = "cannot be switched off"

HABITS: tuple[Habit, ...] = (
    Habit("plain"),
    Habit("continues begun replies", continues=True),
    # thoughts: where
    Habit("thinks in tags", Always, "tags", thinking=STUCK, logprobs=True),
    Habit("thinks, the prompt opens the tag", Always, "closing tag", thinking=STUCK),
    Habit("thinks in brackets", Always, "brackets", thinking=STUCK),
    Habit("thinks in channels", Always, "channels", thinking=STUCK),
    Habit("thinks in marks of its family", Always, "seed", thinking=STUCK),
    Habit("thinks in reasoning_content", Always, "reasoning_content", thinking="reasoning_content"),
    Habit("thinks in reasoning", Always, "reasoning", thinking="reasoning"),
    Habit("thinks in reasoning_details", Always, "reasoning_details", thinking="reasoning_details"),
    Habit("thinks in two fields", Always, "two fields", thinking="reasoning"),
    Habit("thinks in parts of parts", Always, "parts of parts", thinking="parts of the content"),
    Habit("thinks in parts", Always, "parts", thinking="parts of the content"),
    Habit("thinks out of sight, and bills it", Always, "nowhere", mend=usage(_billed), thinking="the bill alone"),
    Habit("thinks out of sight, billed beside", Always, "nowhere", mend=usage(_beside), thinking="the bill alone"),
    Habit("thinks out of sight", Always, "nowhere", mend=usage(_more_than_it_shows), thinking="the bill alone"),
    Habit("thinks at times, not in the trial", lambda body: not is_trial(body), "tags", thinking=STUCK),
    # thoughts: log-probabilities
    Habit("numbers of thought and answer", Always, "tags", covers=True, thinking=STUCK),
    Habit("numbers of a thought in a field", Always, "reasoning_content", covers=True, thinking="reasoning_content"),
    Habit("numbers of a thought in parts", Always, "parts", covers=True, thinking="parts of the content"),
    # thoughts: off and on
    Habit("effort none", thinks_unless(reasoning_effort="none"), thinking=OFF + "reasoning_effort=none"),
    Habit("template's enable_thinking", thinks_unless(chat_template_kwargs={"enable_thinking": False}), thinking=OFF + "chat_"),
    Habit("template's thinking", thinks_unless(chat_template_kwargs={"thinking": False}), thinking=OFF + "chat_template"),
    Habit("thinking disabled", thinks_unless(thinking={"type": "disabled"}), thinking=OFF + "thinking=type=disabled"),
    Habit("reasoning disabled", thinks_unless(reasoning={"enabled": False}), thinking=OFF + "reasoning="),
    Habit(
        "refuses effort, takes the template's",
        thinks_unless(chat_template_kwargs={"enable_thinking": False}),
        "reasoning_content",
        refuse=refuse("Extra inputs are not permitted", "reasoning_effort", status=422),
        thinking=OFF + "chat_template_kwargs",
    ),
    Habit(
        "no numbers while it thinks",
        thinks_unless(reasoning_effort="none"),
        "nowhere",
        refuse=refuse(
            "logprobs are not supported with reasoning models.", "logprobs", when=thinks_unless(reasoning_effort="none")
        ),
        mend=lambda reply, body: reply if body.get("reasoning_effort") == "none" else PLAIN_DETAILS(reply, body),
        thinking=OFF + "reasoning_effort=none",
    ),
    Habit(
        "thinks when told to",
        lambda body: (body.get("chat_template_kwargs") or {}).get("enable_thinking") is True,
        "reasoning_content",
        settings={"thinking": "on"},
        thinking="on by chat_template_kwargs",
    ),
    Habit(
        "thinks with an effort",
        lambda body: body.get("reasoning_effort") == "high",
        "reasoning",
        settings={"thinking": "high"},
        thinking="high by reasoning_effort=high",
    ),
    Habit(
        "a thought and no answer",
        Always,
        "reasoning_content",
        mend=first_choice(lambda choice: choice["message"].update(content=None)),
        thinking="reasoning_content",
        error="holds a thought and no answer",
    ),
    Habit(
        "a thought without end",
        Always,
        "reasoning",
        mend=first_choice(lambda choice: (choice["message"].update(content=None), choice.update(finish_reason="length"))),
        thinking="reasoning",
        error="before any answer: all went into thoughts",
    ),
    Habit(
        "nothing at the limit",
        mend=first_choice(lambda choice: (choice["message"].update(content=""), choice.update(finish_reason="length"))),
        error="before any answer",
    ),
    # refusals: named
    Habit(
        "names the parameter",
        refuse=refuse("Unsupported parameter.", "top_k", param="top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "403 for logprobs",
        refuse=refuse("You are not allowed to request logprobs from this model", "logprobs", status=403),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "Logprobs with a capital",
        refuse=refuse("Logprobs is not enabled for models/x", "logprobs"),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "top_logprobs alone",
        refuse=refuse("top_logprobs must be between 1 and 8", "top_logprobs", param="top_logprobs"),
        without=frozenset({"top_logprobs"}),
    ),
    Habit(
        "names in camels",
        refuse=refuse("Unknown field `topK`, `topP`", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "deprecated temperature",
        refuse=refuse("`temperature` is deprecated for this model.", "temperature"),
        without=frozenset({"temperature"}),
    ),
    Habit(
        "not both temperature and top_p",
        refuse=refuse(
            "`temperature` and `top_p` cannot both be specified for this model.",
            "top_p",
            when=lambda body: "temperature" in body,
        ),
        without=frozenset({"top_p"}),
    ),
    Habit(
        "a positive temperature",
        refuse=refuse("`temperature` must be strictly positive", "temperature", when=lambda body: body["temperature"] == 0),
        without=frozenset({"temperature=0"}),
    ),
    Habit("n at most 1", refuse=refuse("n must be at most 1", "n"), without=frozenset({"n"})),
    Habit("n quoted", refuse=refuse("'n' : number must be at most 1", "n"), without=frozenset({"n"})),
    Habit("one choice", refuse=refuse("Only one completion choice is allowed", "n"), without=frozenset({"n"})),
    Habit("ignores n", mend=lambda reply, _: {**reply, "choices": reply["choices"][:1]}, without=frozenset({"n"})),
    Habit(
        "the other name of the seed",
        refuse=refuse("", "seed", status=422, body=lambda found: {"detail": extras(found)}),
        without=frozenset({"seed"}),
    ),
    Habit(
        "422, several in a list",
        refuse=refuse("", "top_k", "seed", "random_seed", status=422, body=lambda found: {"detail": extras(found)}),
        without=frozenset({"top_k", "seed"}),
    ),
    Habit(
        "422, deep inside",
        refuse=refuse(
            "", "seed", "random_seed", "top_k", status=422, body=lambda found: {"message": {"detail": extras(found[:1])}}
        ),
        without=frozenset({"top_k", "seed"}),
    ),
    Habit("another server's words", refuse=refuse("", "top_k", body=_raw), without=frozenset({"top_k"})),
    Habit("a list of errors", refuse=refuse("", "seed", "top_k", body=_listed), without=frozenset({"seed", "top_k"})),
    Habit(
        "200 with an error",
        mend=inside({"message": "top_k is not supported", "code": 400}, "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "did you mean",
        refuse=refuse("property 'top_k' is unsupported, did you mean 'top_p'?", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "use another instead",
        refuse=refuse("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"),
        without=frozenset({"max_tokens"}),
    ),
    Habit(
        "lists what it takes",
        refuse=refuse("Unsupported field top_k. Supported parameters: temperature, top_p, seed, stop, n", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "404 for parameters",
        refuse=refuse("No endpoints found that can handle the requested parameters.", "top_k", status=404),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "501",
        refuse=refuse("logprobs: not implemented", "logprobs", status=501),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "breaks at top_logprobs",
        refuse=refuse("Internal Server Error", "top_logprobs", status=500),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit("stop sequences", refuse=refuse("Stop sequences are not supported", "stop"), without=frozenset({"stop"})),
    # refusals: unnamed
    Habit("bad request, for top_k", refuse=refuse("Bad Request", "top_k"), without=frozenset({"top_k"})),
    Habit("bad request, for stop", refuse=refuse("invalid request body", "stop"), without=frozenset({"stop"})),
    Habit("bad request, for n", refuse=refuse("Bad Request", "n"), without=frozenset({"n"})),
    Habit("bad request, for max_tokens", refuse=refuse("Bad Request", "max_tokens"), without=frozenset({"max_tokens"})),
    Habit(
        "bad request, for two",
        refuse=refuse("Bad Request", "top_k", "seed", "random_seed"),
        without=frozenset({"top_k", "seed"}),
    ),
    # begun replies
    Habit("no trailing assistant", refuse=begun("The conversation must end with a user message.")),
    Habit("no prefill", refuse=begun("Assistant message prefill is not supported with this model")),
    Habit("last role", refuse=begun("Expected last role User or Tool for serving but got assistant", 422)),
    Habit("bad request, for a begun reply", refuse=begun("Bad Request")),
    Habit(
        "forbids what tells it to go on",
        refuse=refuse("", "continue_final_message", status=422, body=lambda found: {"detail": extras(found)}),
        continues=True,
    ),
    # numbers
    Habit("null", numbers=lambda _, count: [None] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("NaN", numbers=lambda _, count: [float("nan")] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("text", numbers=lambda _, count: ["-0.1"] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("positive", numbers=lambda _, count: [0.97] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("null after the trial", numbers=lambda body, n: [LOGPROB if is_trial(body) else None] * n, logprobs=False),
    Habit("one null", numbers=_last_is_none, logprobs=False),
    Habit("minus infinity", numbers=lambda _, count: [float("-inf")] * count),
    Habit("-9999", numbers=lambda _, count: [-9999.0] * count),
    Habit("taken after the temperature", numbers=_tempered),
    Habit("greedy is certain", numbers=_certain_if_greedy),
    Habit(
        "no numbers after the trial",
        mend=first_choice(lambda choice: choice.update(logprobs=None)),
        logprobs=False,
    ),
    # bills and ends
    Habit("no bill", mend=lambda reply, _: {key: value for key, value in reply.items() if key != "usage"}),
    Habit("a bill of nothing", mend=usage(lambda *_: None)),
    Habit(
        "a filter at the end", mend=first_choice(lambda one: one.update(finish_reason="content_filter")), error="content filter"
    ),
    Habit("SAFETY", mend=first_choice(lambda choice: choice.update(finish_reason="SAFETY")), error="content filter"),
    Habit(
        "a filter in place of choices",
        mend=instead(
            lambda _: {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]}
        ),
        error="content filter",
    ),
    Habit(
        "400 of a filter",
        refuse=refuse(
            "",
            "messages",
            body={"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}},
            when=lambda body: not is_trial(body) and "colour" not in str(body),
        ),
        error="content filter",
    ),
    # other interfaces
    Habit("Responses", mend=instead(lambda _: {"object": "response", "output": []}), error="form that is not OpenAI's"),
    Habit("Messages", mend=instead(lambda _: {"type": "message", "content": [{"text": "Ann"}]}), error="form that is not"),
    Habit("Ollama's own", mend=instead(lambda _: {"message": {"content": "Ann"}, "done": True}), error="form that is not"),
    Habit("a list", mend=instead(lambda _: [{"generated_text": "Ann"}]), error="form that is not OpenAI's"),
    Habit("a page", mend=instead(lambda _: b"<!doctype html><html>"), error="form that is not OpenAI's"),
    Habit("a stream", mend=instead(lambda _: b'data: {"choices": []}\n\ndata: [DONE]'), error="form that is not OpenAI's"),
    Habit("null alone", mend=instead(lambda _: None), error="form that is not OpenAI's"),
)

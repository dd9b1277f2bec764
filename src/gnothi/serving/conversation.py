"""What clients send, read strictly: the messages of a chat, the input of a response; what cannot be done is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.retrieval.filters import Filters, as_filters
from gnothi.serving.attachments import Attached, Message, attached_in, helper, separate
from gnothi.serving.failures import Refusal
from gnothi.serving.follow_ups import Turn
from gnothi.types import encodable

_TEXTS = ("text", "input_text", "output_text")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last question, what was said before it, and the evidence that came with either, the latest first; ``helper``: it is a
    front end's own prompt."""

    question: str
    history: tuple[Turn, ...] = ()
    helper: bool = False
    attached: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A request for an answer. ``usage``: a stream is to end with a chunk about tokens."""

    model: object
    conversation: Conversation
    stream: bool = False
    usage: bool = False
    filters: Filters = ()


def chat_request(body: Mapping[str, Any], longest: int) -> AnswerRequest:
    """Of POST /v1/chat/completions. Raises Refusal."""
    _refuse(body)
    if body.get("logprobs") or body.get("top_logprobs"):
        raise _unsupported("logprobs", "log-probabilities of an answer that may be put together from several calls")
    _refuse_format("response_format", body.get("response_format"))
    options = body.get("stream_options") or {}
    usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    read = conversation(_list(body, "messages"), "messages", longest)
    return AnswerRequest(_model(body), read, _flag(body, "stream"), usage, filters(body))


def response_request(body: Mapping[str, Any], longest: int) -> AnswerRequest:
    """Of POST /v1/responses. Raises Refusal."""
    _refuse(body)
    for key in ("previous_response_id", "conversation"):
        if body.get(key) is not None:
            raise _unsupported(key, "conversations kept on the server: send the whole conversation as input")
    if body.get("background"):
        raise _unsupported("background", "answers that are fetched later")
    include = body.get("include")
    if body.get("top_logprobs") or (isinstance(include, list) and "message.output_text.logprobs" in include):
        raise _unsupported("top_logprobs", "log-probabilities of an answer that may be put together from several calls")
    text = body.get("text")
    _refuse_format("text", text.get("format") if isinstance(text, Mapping) else text)
    messages = body.get("input")
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    items = [one for one in _list({"input": messages}, "input") if not isinstance(one, Mapping) or "role" in one]
    return AnswerRequest(_model(body), conversation(items, "input", longest), _flag(body, "stream"), filters=filters(body))


def conversation(messages: Sequence[Any], name: str, longest: int) -> Conversation:
    """The last message of the user, and the user's and assistant's before it. Raises Refusal."""
    turns: list[Turn] = []
    instructions: list[tuple[Attached, ...]] = []
    for place, one in enumerate(messages):
        where = f"{name}[{place}]"
        if not isinstance(one, Mapping):
            raise Refusal(400, f"{where}: expected an object with role and content.", param=where)
        role = one.get("role")
        if role not in _ROLES:
            raise Refusal(400, f"{where}.role: got {role!r:.40}, expected one of {', '.join(_ROLES)}.", param=f"{where}.role")
        if role in ("user", "assistant"):
            turns.append(Turn(role, content(one.get("content"), f"{where}.content")))
        elif role in ("system", "developer"):
            instructions.append(attached_in(_texts(one.get("content"))))
    last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=None)
    if last is None:
        raise Refusal(400, f"{name}: expected a message of the role user with a question.", param=name)
    if helper(turns[last].text):  # it may hold the whole conversation
        return Conversation(turns[last].text.strip(), helper=True)
    separated = [separate(turn.text) if turn.role == "user" else Message(turn.text) for turn in turns[: last + 1]]
    last_question = question(separated[last].question, name, longest)
    history = (
        Turn(turn.role, one.question) for turn, one in zip(turns[:last], separated, strict=False) if one.question.strip()
    )
    return Conversation(
        last_question,
        tuple(history),
        attached=_each_once([separated[last].attached, *instructions, *_uncited(separated[:last])]),
    )


def _uncited(earlier: Sequence[Message]) -> list[tuple[Attached, ...]]:
    """What came with earlier questions, the latest first; names by which answers cite are the last one's."""
    return [tuple(replace(one, cite="") for one in message.attached) for message in reversed(earlier)]


def _each_once(groups: Sequence[Sequence[Attached]]) -> tuple[Attached, ...]:
    by_text: dict[str, Attached] = {}
    for one in (one for some in groups for one in some):
        by_text.setdefault(one.text, one)
    return tuple(by_text.values())


def _texts(value: object) -> str:
    """What can be read of instructions; nothing in them is refused."""
    if isinstance(value, list):
        value = "\n".join(one["text"] for one in value if isinstance(one, Mapping) and isinstance(one.get("text"), str))
    return encodable(value) if isinstance(value, str) else ""


def content(value: object, where: str) -> str:
    """A text, or the texts of a list of parts. Raises Refusal for pictures, sound and files."""
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, list):
        raise Refusal(400, f"{where}: expected a text or a list of parts.", param=where)
    texts = []
    for place, part in enumerate(value):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "refusal":
            continue
        if kind not in _TEXTS or not isinstance(part.get("text"), str):
            raise Refusal(
                400,
                f"{where}[{place}]: got a part of the type {kind!r:.40}; this server reads text alone.",
                code="unsupported_content",
                param=f"{where}[{place}]",
            )
        texts.append(part["text"])
    return encodable("\n".join(texts))


def question(value: object, name: str, longest: int) -> str:
    """A question or query, without the space around it. Raises Refusal for a blank one and for one that is too long."""
    if not isinstance(value, str) or not value.strip():
        raise Refusal(400, f"{name}: expected a question that is not empty.", param=name)
    if len(value) > longest:
        raise Refusal(
            400,
            f"{name}: got a question of {len(value):,} characters, expected at most {longest:,}.",
            code="string_above_max_length",
            param=name,
        )
    return encodable(value.strip())


def filters(body: Mapping[str, Any]) -> Filters:
    """Its ``filters``: none, one, or a list of them (``retrieval.filters.as_filters``). Raises Refusal."""
    try:
        return as_filters(body.get("filters"))
    except InvalidSetting as error:
        raise Refusal(400, error.message, param="filters") from None


def _refuse(body: Mapping[str, Any]) -> None:
    """Plain ``tools`` are ignored: front ends send them on every turn."""
    if body.get("n") not in (None, 1):
        raise _unsupported("n", "more than one answer to a question")
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none"):
        raise _unsupported("tool_choice", "calls of a client's tools: leave it out, or say auto")


def _refuse_format(name: str, value: object) -> None:
    kind = value.get("type") if isinstance(value, Mapping) else value
    if kind not in (None, "text"):
        raise _unsupported(name, "answers in a given form")


def _unsupported(param: str, feature: str) -> Refusal:
    return Refusal(400, f"{param}: this server does not offer {feature}.", code="unsupported_parameter", param=param)


def _model(body: Mapping[str, Any]) -> object:
    if not isinstance(body.get("model"), str):
        raise Refusal(400, "model: expected the name of a model; GET /v1/models lists them.", param="model")
    return body["model"]


def _flag(body: Mapping[str, Any], key: str) -> bool:
    if body.get(key) not in (None, True, False):
        raise Refusal(400, f"{key}: expected true or false.", param=key)
    return bool(body.get(key))


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(body.get(key), list) or not body[key]:
        raise Refusal(400, f"{key}: expected a list of messages.", param=key)
    items: list[Any] = body[key]
    return items

"""From the JSON of a server to texts with tokens. Servers differ in what they leave out; nothing is taken for granted."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.errors import UsageError
from gnothi.types import Finish, Token


class InvalidReply(Exception):
    """A response that is no answer to the request; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Tokens as the server counts them."""

    prompt_tokens: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation. ``tokens`` is None where the server gave no log-probabilities."""

    text: str
    tokens: tuple[Token, ...] | None
    finish: Finish


@dataclass(frozen=True, slots=True)
class Reply:
    choices: tuple[Choice, ...]
    bill: Bill | None


def read(data: object, stops: bool) -> Reply:
    """The reply of either endpoint, choices in the order of their index. ``stops`` says whether stop strings were sent.

    Raises InvalidReply, or UsageError for a reply that the server withholds.
    """
    choices = sorted(_choices(data), key=lambda choice: _whole(choice.get("index")))
    return Reply(tuple(_choice(choice, stops) for choice in choices), bill(data))


def bill(data: object) -> Bill | None:
    """What the server says it counted, None where it does not."""
    usage = data.get("usage") if isinstance(data, Mapping) else None
    if not isinstance(usage, Mapping) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    return Bill(_whole(usage["prompt_tokens"]), _whole(usage.get("completion_tokens")))


def _choices(data: object) -> list[Mapping[str, Any]]:
    if not isinstance(data, Mapping):
        raise InvalidReply(f"expected a JSON object, got {_shown(data)}")
    if data.get("error"):
        raise InvalidReply(f"the server reports {_shown(data['error'])}")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, Mapping) for choice in choices):
        raise InvalidReply(f"expected choices, got {_shown(dict(data))}")
    return choices


def _choice(choice: Mapping[str, Any], stops: bool) -> Choice:
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    if text is None and isinstance(message, Mapping):
        text = ""
    if not isinstance(text, str):
        raise InvalidReply(f"expected a text, got {_shown(dict(choice))}")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise UsageError("the server withheld the reply: its content filter stepped in. Ask differently, or another model.")
    tokens = _tokens(choice.get("logprobs"), text)
    return Choice(text, tokens, _finish(reason, choice, stops))


def _finish(reason: object, choice: Mapping[str, Any], stops: bool) -> Finish:
    """Most servers say ``stop`` for both a stop string and the model's own end; vLLM's ``stop_reason`` tells them apart.
    Where nothing does, a stop string is taken for the cause if there was any."""
    if reason == "length":
        return "length"
    if "stop_reason" in choice:
        return "stop" if isinstance(choice["stop_reason"], str) else "eos"
    return "stop" if stops else "eos"


# --- tokens ----------------------------------------------------------------------------------------------------------


def _tokens(logprobs: object, text: str) -> tuple[Token, ...] | None:
    if not isinstance(logprobs, Mapping):
        return None
    content = logprobs.get("content")
    if isinstance(content, list):
        entries = [entry for entry in content if isinstance(entry, Mapping)]
        return shares(chat_texts(entries), [entry.get("logprob") for entry in entries], text)
    names, numbers = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if isinstance(names, list) and isinstance(numbers, list) and len(names) == len(numbers):
        return shares([str(name) for name in names], numbers, text)
    return None


def chat_texts(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tokens' texts; a character whose bytes are spread over tokens belongs to the one that completes it."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    texts = []
    for entry in entries:
        raw = entry.get("bytes")
        if isinstance(raw, list) and all(isinstance(value, int) and 0 <= value < 256 for value in raw):
            texts.append(decoder.decode(bytes(raw)))
        else:
            texts.append(str(entry.get("token", "")))
    return texts


def shares(texts: Sequence[str], logprobs: Sequence[object], text: str) -> tuple[Token, ...]:
    """Tokens whose texts add up to ``text``.

    What comes after ``text`` (the token that completed a stop string, an end of sequence) is left out. Where the server's
    names of tokens do not add up to it at all, each token gets the part that its name can be found in, the first one the rest.
    """
    numbers = [min(0.0, float(number)) if isinstance(number, int | float) else 0.0 for number in logprobs]
    whole = "".join(texts)
    if not whole.startswith(text):
        texts = _found(texts, text)
    tokens: list[Token] = []
    done = 0
    for share, number in zip(texts, numbers, strict=True):
        if done >= len(text):
            break
        tokens.append(Token(share[: len(text) - done], number))
        done += len(share)
    return tuple(tokens)


def _found(names: Sequence[str], text: str) -> list[str]:
    """``text`` cut where the names of tokens can be found in it, in order; what lies between goes to the token before."""
    starts: list[int] = []
    at = 0
    for name in names:
        place = text.find(name.strip(), at) if name.strip() else -1
        starts.append(at if place < 0 else place)
        at = starts[-1] if place < 0 else place + len(name.strip())
    if starts:
        starts[0] = 0
    ends = [*starts[1:], len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)] if starts else []


def cut(choice: Choice, place: Callable[[str], int | None], finish: Finish) -> Choice:
    """``choice`` up to where ``place`` says its text ends (None: unchanged)."""
    end = place(choice.text)
    if end is None:
        return choice
    text = choice.text[:end]
    tokens = (
        None if choice.tokens is None else shares([t.text for t in choice.tokens], [t.logprob for t in choice.tokens], text)
    )
    return Choice(text, tokens, finish)


def without_start(choice: Choice, length: int) -> Choice:
    """``choice`` without its first ``length`` characters; a token that reaches beyond them keeps the rest of its text."""
    if choice.tokens is None:
        return Choice(choice.text[length:], None, choice.finish)
    tokens: list[Token] = []
    done = 0
    for token in choice.tokens:
        done += len(token.text)
        if done > length:
            kept = min(len(token.text), done - length)
            tokens.append(Token(token.text[len(token.text) - kept :], token.logprob))
    return Choice(choice.text[length:], tuple(tokens), choice.finish)


def _whole(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _shown(value: object, limit: int = 200) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""What a server means when it refuses a request: in which words, and which field of the request it does not take.

Servers put the cause into ``message``, ``detail``, lists of errors, ``param``, ``loc``, or another server's reply as a text;
some name the field, some quote it, some say only that a number is out of range."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.errors import UsageError
from gnothi.models.remote.settings import CONTINUING, OPTIONAL

PREFILL = "prefill"
"""Stands for a begun turn of the assistant among the fields that a server does not take."""
ZERO = "temperature=0"
"""Stands for a temperature of 0, where a server wants a positive one."""
CALLERS = frozenset({"temperature", "top_p", "max_tokens", "max_completion_tokens"})
"""Fields whose values the caller chose: one that is out of range is for the caller to change."""


class Refused(UsageError):
    """The server understood a request and does not accept it. ``reason``: its words; ``fields``: the fields that it names."""

    def __init__(self, message: str, reason: str, fields: Sequence[str] = (), status: int = 400) -> None:
        super().__init__(message)
        self.reason = reason
        self.fields = tuple(fields)
        self.status = status


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The words of an error's body, and the fields that it names in places of their own."""

    reason: str
    parameters: tuple[str, ...]


_WORDS = ("message", "msg", "detail", "details", "error", "errors", "error_description", "title", "reason", "raw", "metadata")
_NAMES = ("param", "parameter", "field", "property", "loc")
_DEPTH = 12


def read_error(body: object) -> ErrorBody:
    """The words of an error's body and the fields that it names, wherever they stand in it."""
    words: list[str] = []
    names: list[str] = []
    _gather(body, words, names, 0)
    return ErrorBody("; ".join(dict.fromkeys(words)) or str(body or "no reason given"), tuple(dict.fromkeys(names)))


def _gather(value: object, words: list[str], names: list[str], depth: int) -> None:
    if depth > _DEPTH:
        return
    if isinstance(value, str):
        inner = _parsed(value)
        if inner is None:
            words.extend(filter(None, [_of_page(value).strip()]))
        else:
            _gather(inner, words, names, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _gather(one, words, names, depth + 1)
    elif isinstance(value, Mapping):
        about, own = "", list[str]()
        for key in _NAMES:
            parameter = value.get(key)
            if isinstance(parameter, list):
                parameter = next((one for one in parameter if isinstance(one, str) and one not in ("body", "query")), None)
            if isinstance(parameter, str):
                names.append(parameter)
                about = f"{parameter}: " if key == "loc" else about
        for key in _WORDS:
            if value.get(key):
                _gather(value[key], own, names, depth + 1)
        words.extend([about + one for one in own[:1]] + own[1:])


def _of_page(text: str) -> str:
    """The title of a page for people, which proxies and gateways send, or else its words; any other text as it is."""
    if not text.lstrip().startswith("<"):
        return text
    title = re.search(r"<(title|h1)[^>]*>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL)
    words = title[2] if title else re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.IGNORECASE | re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", words)).split()) or "a page without words"


def _parsed(text: str) -> object:
    """The error of another server, passed on as a text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict | list) else None


# --- which field ------------------------------------------------------------------------------------------------------

_NOT_TAKEN = re.compile(
    r"not? (currently |yet )?support|n't (currently )?support|unsupported|unknown|unrecogni[sz]ed|unexpected|"
    r"not (be )?(permitted|allowed|available|recogni[sz]ed|implemented|enabled|accepted|valid|compatible|used?|specified)|"
    r"n't (permitted|allowed|available|enabled)|(is|are) allowed|extra (inputs|fields)|deprecated|disabled|no longer|forbidden|"
    r"incompatible|cannot|can't|additional propert|invalid (parameter|argument|field|key)|does(n't| not) (accept|allow|have)|"
    r"only .{0,60}(supported|allowed|permitted|accepted|available)|reject|not a valid (parameter|argument|field)|turned off",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"(must|should|has to|have to|needs? to) be|at (most|least)|(less|greater|more|fewer|higher|lower|smaller|larger) than|"
    r"between|maximum|minimum|exceed|out of (range|bounds)|too (large|many|high|big|small|low|few)|limit|up to|[<>≤≥]|"
    r"\bonly (one|1)\b",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"context[ _-]*(length|window|size|limit)|n_ctx|max_model_len|maximum (input|sequence|model|prompt) len|reduce the length|"
    r"(prompt|input|request|messages?)\b.{0,40}(too long|exceed)|too many (input )?tokens|"
    r"`inputs`( tokens)? (\+|must have)|range of input length",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"did you mean[^?;]*\??|\b(use|try|consider|prefer)\b[^;.]*\binstead\b|\binstead of\b[^;.]*|"
    r"(?<![a-z])(supported|allowed|valid|accepted|available|known|permitted|possible|expected) "
    r"(parameters|fields|arguments|properties|options|keys|names)\b(\s*(are|is))?\s*:?[^;]*",
    re.IGNORECASE,
)
"""What a message says of fields that it does not complain about."""
_BEGUN = re.compile(
    r"pre-?fill|(last|final|trailing|ends?|ending)\b.{0,60}\b(assistant|user)\b|\bassistant\b.{0,60}\b(last|final|trailing|end)\b|"
    r"continue_final_message|add_generation_prompt|roles? must alternate|cannot be continued|assistant.{0,30}prefix",
    re.IGNORECASE | re.DOTALL,
)
_BOTH = re.compile(r"\b(both|together|one of|simultaneous)", re.IGNORECASE)
_ALIASES: Mapping[str, str] = {
    "n": r"(?<![\\\w'’.-])n(?![\w'’-])|"
    r"\b(one|multiple|several|single|number of) (\w+ )?(completions?|choices?|candidates?|generations?)|candidate_?count",
    "logprobs": r"(?<!top)(?<!top[ _-])(response_?)?log[ _-]?prob(abilitie)?s?\b",
    "top_logprobs": r"top[ _-]?log[ _-]?probs?\b",
    "stop": r"\bstop([ _-]?(sequence|string|word|token)s?)?\b",
    "seed": r"\b(random_)?seed\b",
    "top_k": r"\btop[ _-]?k\b",
    "top_p": r"\btop[ _-]?p\b",
    "max_tokens": r"\bmax_?tokens\b",
    "max_completion_tokens": r"\bmax_?completion_?tokens\b",
}
"""Other names under which servers speak of a field."""
_QUOTED = re.compile(r"[`'\"“‘]([A-Za-z][\w.\[\]-]*)[`'\"”’]")


def about_length(refused: Refused) -> bool:
    """Whether the prompt, with room for the reply, is said to be too long."""
    return bool(_LENGTH.search(refused.reason))


def refused_field(refused: Refused, request: Mapping[str, Any]) -> str | None:
    """The optional field of ``request`` that the server does not take, or ``PREFILL`` for a begun turn of the assistant.

    None where the refusal names none, or is about something else, such as a prompt that is too long or a value out of range
    that the caller chose."""
    if about_length(refused):
        return None
    prefilled = _ends_with_assistant(request)
    reason = _HINT.sub(" ", refused.reason)
    if prefilled and _BEGUN.search(reason):
        return PREFILL
    sent = {name for name in OPTIONAL if name in request}
    strictly, range_only = bool(_NOT_TAKEN.search(reason)), bool(_RANGE.search(reason))
    field = _field_named(refused.fields, reason, sent)
    if field is None:
        return None
    if field in CONTINUING:
        return PREFILL
    named_apart = any(_canonical(one, sent) == field for one in refused.fields)
    if field in CALLERS and not (strictly and not _only_a_range(reason)):
        return ZERO if field == "temperature" and request["temperature"] == 0 and (strictly or range_only) else None
    return field if strictly or range_only or named_apart else None


def about_value(refused: Refused, request: Mapping[str, Any]) -> bool:
    """Whether the refusal is about a value that the caller chose."""
    if not _RANGE.search(refused.reason):
        return False
    return _field_named(refused.fields, _HINT.sub(" ", refused.reason), {one for one in CALLERS if one in request}) is not None


def _only_a_range(reason: str) -> bool:
    """Whether what is not allowed is a value beyond a limit, which is said like "must be between 0 and 2"."""
    return bool(
        re.search(r"between|at (most|least)|(less|greater) than|too (large|high|small)|[<>≤≥]", reason)
    ) and not re.search(r"support|unrecogni|deprecated|only", reason, re.IGNORECASE)


def _field_named(parameters: Sequence[str], reason: str, sent: set[str]) -> str | None:
    """By what the error names apart, else by the first quoted name, else by the first that occurs in its words."""
    for name in parameters:
        if (found := _canonical(name, sent)) is not None:
            return found
    quoted = [found for one in _QUOTED.findall(reason) if (found := _canonical(one, sent)) is not None]
    if not quoted:
        places = {name: match.start() for name in sent if (match := _mention(name, reason))}
        quoted = sorted(places, key=lambda name: (places[name], -len(name)))
    if {"temperature", "top_p"} <= set(quoted) and _BOTH.search(reason):
        return "top_p"
    return quoted[0] if quoted else None


def _mention(name: str, reason: str) -> re.Match[str] | None:
    return re.search(_ALIASES.get(name, rf"\b{name}\b"), reason, re.IGNORECASE)


def _canonical(name: str, sent: set[str]) -> str | None:
    """The field that is meant by a name in any spelling: ``topLogprobs``, ``body.top_k``, ``stop[0]``."""
    parts = [re.sub(r"\W.*", "", part) for part in name.split(".")]
    for part in (name, parts[0], parts[-1]):
        plain = part.lower().replace("_", "").replace("-", "")
        for field in sent:
            if plain == field.replace("_", "") or (field == "seed" and plain == "randomseed"):
                return field
    return None


def _ends_with_assistant(request: Mapping[str, Any]) -> bool:
    """Whether the request ends with a turn of the assistant."""
    turns = request.get("messages")
    return bool(turns) and turns[-1].get("role") == "assistant"  # type: ignore[index]

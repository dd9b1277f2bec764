"""What an endpoint can do, found out by a few requests of a token or two each, or told by settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from gnothi.models.remote.client import Client, Missing, Refused
from gnothi.models.remote.replies import InvalidReply, Reply, read
from gnothi.models.remote.requests import Format
from gnothi.models.remote.settings import OPTIONAL, RemoteSettings
from gnothi.models.rendering import join
from gnothi.types import Decoding

T = TypeVar("T")

CONTINUES = frozenset({"vllm", "llamacpp", "gnothi"})
"""Owners of models (as servers name themselves) that go on with a begun turn of the assistant."""
QUESTION = "Say yes."
SERIES = "one, two, three, four, five, six, seven,"
"""What a model goes on with surely, if it is any good; and then it would not say the same again."""
SAME = 0.3
"""Log-probabilities of one token may differ by so much, for another order of sums in 16 bits."""
TRIAL = Decoding(max_tokens=16, temperature=0.5, top_k=5, top_p=0.9, stop=("\n\n",), seed=1)
FIRST_RETRIES = 2
"""A server that cannot be reached at all is reported soon."""


@dataclass(frozen=True, slots=True)
class Features:
    """``without`` names fields of requests that the server refuses; ``owner`` is what it calls itself, where it does."""

    endpoint: Literal["chat", "completions"]
    logprobs: bool
    scoring: Literal["echo", "choice", "off"]
    prefill: bool
    without: tuple[str, ...] = ()
    owner: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        return cls(**{**data, "without": tuple(data["without"])})


async def find_out(client: Client, model: str, settings: RemoteSettings) -> Features:
    """Ask the server what the settings leave open. Raises ModelUnavailable, BudgetSpent or Refused."""
    owner = await _owner(client, model)
    prefill = settings.prefill == "assistant" or (settings.prefill == "auto" and owner in CONTINUES)
    endpoint, logprobs, without = await _endpoint(client, model, settings, prefill)
    scoring = await _scoring(client, model, settings, endpoint)
    return Features(endpoint, logprobs, scoring, prefill, tuple(sorted(without)), owner)


async def _owner(client: Client, model: str) -> str:
    """Who serves the model, as the list of models says; empty where there is no such list."""
    try:
        data = await client.look("/models", FIRST_RETRIES)
    except (Missing, Refused):
        return ""
    entries = data.get("data") if isinstance(data, Mapping) else None
    known = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    named = [entry for entry in known if entry.get("id") == model] or known[:1]
    return str(named[0].get("owned_by") or "") if named else ""


async def _endpoint(
    client: Client, model: str, settings: RemoteSettings, prefill: bool
) -> tuple[Literal["chat", "completions"], bool, set[str]]:
    failure: Exception | None = None
    candidates: tuple[Literal["chat", "completions"], ...] = ("chat", "completions")
    if settings.endpoint != "auto":
        candidates = (settings.endpoint,)
    for endpoint in candidates:
        try:
            return endpoint, *await _trial(client, Format(model, endpoint, prefill, settings), settings)
        except (Missing, Refused) as error:
            failure = failure or error
    assert failure is not None
    raise failure


async def _trial(client: Client, format: Format, settings: RemoteSettings) -> tuple[bool, set[str]]:
    """Whether log-probabilities come, and which fields had to be left out."""
    without = set(settings.leave_out)
    shown = {"messages": [{"role": "user", "content": QUESTION}]} if format.chat else {"prompt": QUESTION}
    logprobs = settings.logprobs != "off"

    def body() -> dict[str, Any]:
        return format.body(shown, TRIAL, seed=1, logprobs=logprobs, without=without)

    def first(data: object) -> Reply:
        return read(data, stops=True)

    reply = await adapting(client, format.path, body, first, without)
    offered = any(choice.tokens for choice in reply.choices)
    return settings.logprobs == "on" or (logprobs and offered and "logprobs" not in without), without


async def _scoring(client: Client, model: str, settings: RemoteSettings, endpoint: str) -> Literal["echo", "choice", "off"]:
    if settings.scoring != "auto":
        return settings.scoring
    if endpoint == "chat":
        return "off"
    body = {"model": model, "max_tokens": 1, "temperature": 0, "logprobs": 1, **settings.more()}
    try:
        reply = await client.ask("/completions", {**body, "prompt": SERIES}, partial(read, stops=False))
        first = next(iter(reply.choices[0].tokens or ()), None)
        whole = join(SERIES, first.text if first else "")
        tokens, _ = await client.ask("/completions", {**body, "prompt": whole, "echo": True}, echoed)
    except (Missing, Refused):
        return "off"
    if first is None or len(tokens) < 2 or not "".join(text for text, _ in tokens).endswith(whole[-4:]):
        return "off"
    # Some servers tell of each token the probability that the next place gives it: it must be what it was when it was said.
    said = tokens[-1][1]
    right = not first.text.strip() or (said is not None and abs(said - first.logprob) < SAME)
    return "echo" if right else "off"


async def adapting(
    client: Client, path: str, body: Callable[[], dict[str, Any]], parse: Callable[[object], T], without: set[str]
) -> T:
    """Ask, and leave out what the server refuses, one field after the other; ``without`` grows by it."""
    while True:
        request = body()
        try:
            return await client.ask(path, request, parse)
        except Refused as refused:
            field = refused_field(refused, request)
            if field is None:
                raise
            without.add(field)


_NOT_TAKEN = re.compile(
    r"not? support|unsupported|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed|available|recogni[sz]ed|implemented)|"
    r"is allowed|extra inputs",
    re.IGNORECASE,
)


def refused_field(refused: Refused, request: Mapping[str, Any]) -> str | None:
    """The optional field of ``request`` that the server does not take; None where the refusal is about something else,
    such as a value out of range or a prompt that is too long."""
    if not _NOT_TAKEN.search(refused.said):
        return None
    sent = {name for name in OPTIONAL if name in request}
    if refused.parameter is not None and refused.parameter.partition(".")[0] in sent:
        return refused.parameter.partition(".")[0]
    if "n" in sent and re.search(r"one (completion|choice)", refused.said, re.IGNORECASE):
        return "n"
    named = [name for name in sent if re.search(rf"\b{name}\b", refused.said)]
    return max(named, key=lambda name: (len(name), name)) if named else None


def echoed(data: object) -> tuple[list[tuple[str, float | None]], int]:
    """Text and log-probability of each token of an echoed prompt, and the prompt's number of tokens.

    Raises InvalidReply for what is no completion; a server that does not echo gives an empty list.
    """
    reply = read(data, stops=False)
    assert isinstance(data, Mapping)
    logprobs = data["choices"][0].get("logprobs")
    if not isinstance(logprobs, Mapping) or not isinstance(logprobs.get("tokens"), list):
        return [], 0
    numbers = logprobs.get("token_logprobs")
    if not isinstance(numbers, list) or len(numbers) != len(logprobs["tokens"]):
        raise InvalidReply("expected as many log-probabilities as tokens")
    generated = reply.bill.generated_tokens if reply.bill else 1
    count = max(0, len(numbers) - generated)
    tokens = [(str(text), number) for text, number in zip(logprobs["tokens"], numbers, strict=True)]
    return tokens[:count], reply.bill.prompt_tokens if reply.bill else count


def likeliest(data: object) -> tuple[dict[str, float], int]:
    """The likeliest first tokens of a reply with their log-probabilities, and the prompt's number of tokens."""
    reply = read(data, stops=False)
    assert isinstance(data, Mapping)
    logprobs = data["choices"][0].get("logprobs") or {}
    found: dict[str, float] = {}
    content = logprobs.get("content")
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        for entry in content[0].get("top_logprobs") or []:
            found[str(entry.get("token"))] = float(entry.get("logprob"))
    elif logprobs.get("top_logprobs"):
        found = {str(text): float(number) for text, number in dict(logprobs["top_logprobs"][0]).items()}
    if not found:
        raise InvalidReply("expected the likeliest tokens, got none")
    return found, reply.bill.prompt_tokens if reply.bill else 0

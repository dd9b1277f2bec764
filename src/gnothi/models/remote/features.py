"""The features of an endpoint, found by a few requests or given by settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from gnothi.errors import ModelUnavailable
from gnothi.models.remote import probing
from gnothi.models.remote.adapting import Habits, by_setting
from gnothi.models.remote.client import Broken, Client, Denied, Missing, Slow
from gnothi.models.remote.probing import FIRST_RETRIES, Numbers
from gnothi.models.remote.refusals import PREFILL, Refused, about_length, about_value
from gnothi.models.remote.replies import Reply, read
from gnothi.models.remote.requests import Format
from gnothi.models.remote.settings import OPENAI, RemoteSettings
from gnothi.models.remote.thinking_fields import ladder, sets_thinking
from gnothi.models.remote.window import window
from gnothi.types import Decoding

QUESTION = "Say yes."
ROOMS = (512, 128, 16)
"""Tokens of the trial's reply: enough to see a model think and come to an end, less where that does not fit."""
FIELDS = Decoding(temperature=0.5, top_k=5, top_p=0.9, seed=1)
BY_SETTING = "a setting"
_THINKING = re.compile(r"think|reasoning", re.IGNORECASE)
"""Words of a server that answers only requests that say whether to think."""


@dataclass(frozen=True, slots=True)
class Features:
    """``without`` names fields of requests that the server does not take, and why; ``owner`` is what it calls itself, where it
    does. ``thinking`` are fields that say whether to think, ``thoughts`` the place in replies where thoughts were seen all the
    same, ``alone`` the one where they were seen while nothing was said of it."""

    endpoint: Literal["chat", "completions"]
    logprobs: bool
    scoring: Literal["echo", "choice", "off"]
    without: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    thinking: Mapping[str, Any] = field(default_factory=dict)
    thoughts: str = ""
    alone: str = ""
    numbers: Numbers = "unknown"
    greedy: bool = True
    window: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """What replies may depend on; in which words a server refused something is no part of it."""
        left_out = sorted(self.without)
        values = {name: getattr(self, name) for name in ("endpoint", "logprobs", "scoring", "greedy")}
        return {
            **values,
            "without": left_out,
            "thinking": dict(self.thinking),
            "thinks": bool(self.thoughts),
            "numbers": self.numbers,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        return cls(**data)


async def find_out(client: Client, model: str, settings: RemoteSettings) -> Features:
    """Ask the server what the settings leave open. Raises ModelUnavailable, BudgetSpent or Refused."""
    entry = await _entry(client, model)
    owner = str(entry.get("owned_by") or "")
    format, habits, reply, alone = await _endpoint(client, model, settings)
    logprobs = settings.logprobs == "on"
    if settings.logprobs == "auto" and "logprobs" not in habits.without:
        choice = reply.choices[0]
        logprobs = bool(choice.tokens or (choice.before and not choice.text))
        if not logprobs:
            habits.without["logprobs"] = choice.lacking or "none came though they were asked for"
    if format.chat and settings.prefill == "auto":
        if format.thinks:
            habits.without[PREFILL] = "the model thinks before it answers"
        elif (why := await probing.continues(client, format, habits)) is not None:
            habits.without[PREFILL] = why
    numbers: Numbers = "unknown"
    greedy = True
    if logprobs and not format.thinks:
        numbers, greedy, any_use = await probing.temperatures(client, format, habits)
        if not any_use and settings.logprobs == "auto" and not any(one.logprob for one in reply.choices[0].tokens or ()):
            logprobs, habits.without["logprobs"] = False, "every token's log-probability is 0"
    scoring = settings.scoring
    if scoring == "auto":
        echoes = not format.chat and await probing.echoes(client, model, settings.more())
        scoring = "echo" if echoes else "off"
    return Features(
        "chat" if format.chat else "completions",
        logprobs,
        scoring,
        habits.without,
        owner,
        format.thinking,
        thought_place(reply),
        alone,
        numbers,
        greedy,
        window(entry) or await _window(client, model),
    )


def excluded(settings: RemoteSettings) -> dict[str, str]:
    """The fields that the settings leave out, and why."""
    reasons = by_setting(settings.leave_out)
    return reasons | ({PREFILL: BY_SETTING} if settings.prefill == "text" else {})


def thought_place(reply: Reply) -> str:
    """Where the trial's reply shows thoughts. Tokens that stand nowhere count: of so short a reply, nothing else makes them."""
    return reply.place or ("the bill alone" if reply.hidden else "")


async def _entry(client: Client, model: str) -> Mapping[str, Any]:
    """What the list of models says of the model; empty where there is no such list, or none for this key."""
    try:
        data = await client.look("/models", FIRST_RETRIES)
    except (Missing, Refused, Denied, Broken):
        return {}
    entries = data.get("data") if isinstance(data, Mapping) else None
    known = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    named = [entry for entry in known if entry.get("id") == model]
    return named[0] if named else known[0] if len(known) == 1 else {}


async def _window(client: Client, model: str) -> int | None:
    """Where the list of models does not tell: llama.cpp's ``/props``, what Ollama or LM Studio have loaded by now."""
    if client.url == OPENAI:
        return None
    root = client.url.removesuffix("/v1")
    for path in ("/props", "/api/ps", "/api/v0/models"):
        try:
            found = window(await client.look(root + path, 0), model)
        except (Missing, Refused, ModelUnavailable):
            continue
        if found is not None:
            return found
    return None


async def _endpoint(client: Client, model: str, settings: RemoteSettings) -> tuple[Format, Habits, Reply, str]:
    failure: Exception | None = None
    candidates: tuple[Literal["chat", "completions"], ...] = ("chat", "completions")
    if settings.endpoint != "auto":
        candidates = (settings.endpoint,)
    for endpoint in candidates:
        format, habits = Format(model, endpoint, settings), Habits(excluded(settings))
        reply, alone = None, ""
        try:
            reply = await _trial(client, format, settings, habits)
            alone = thought_place(reply)
        except (Missing, Refused) as error:
            failure = failure or error
            if not (isinstance(error, Refused) and _THINKING.search(error.reason)):
                continue
            alone = "its refusal"
        switched = await _set_thinking(client, model, endpoint, settings, alone) if endpoint == "chat" else None
        if switched is not None:
            format, habits, reply = switched
        if reply is None:
            continue
        format.thinks = bool(thought_place(reply))
        return format, habits, reply, alone
    assert failure is not None
    raise failure


async def _set_thinking(
    client: Client, model: str, endpoint: Literal["chat", "completions"], settings: RemoteSettings, alone: str
) -> tuple[Format, Habits, Reply] | None:
    """Switch thinking on or off, as the settings want it, by the first way that its reply shows to work. Where none does,
    and an effort is wanted, the first that is taken: an easy question may need no thought. All fields are tried afresh with
    it: some are refused only while a model thinks."""
    accepted = None
    off = settings.thinking == "off"
    for fields in () if sets_thinking(settings.more()) else ladder(settings.thinking, bool(alone)):
        format, habits = Format(model, endpoint, settings, fields), Habits(excluded(settings))
        try:
            reply = await _trial(client, format, settings, habits, by_trying=False)
        except (Missing, Refused, ModelUnavailable):
            continue
        answered = bool(reply.choices[0].text.strip())
        if bool(thought_place(reply)) != off and (answered or not off):
            return format, habits, reply
        accepted = accepted or (format, habits, reply)
    return None if off else accepted


async def _trial(client: Client, format: Format, settings: RemoteSettings, habits: Habits, by_trying: bool = True) -> Reply:
    """A reply to a request with all fields that methods use, but stop strings, which would end a thought."""
    prompt_fields = {"messages": [{"role": "user", "content": QUESTION}]} if format.chat else {"prompt": QUESTION}
    rooms = ROOMS if format.chat else ROOMS[-1:]
    for room in rooms:
        decoding = Decoding(room, FIELDS.temperature, FIELDS.top_k, FIELDS.top_p, () if format.chat else ("\n\n",), 1)

        def build(without: Collection[str], decoding: Decoding = decoding) -> dict[str, Any]:
            return format.body(prompt_fields, decoding, seed=1, logprobs=settings.logprobs != "off", without=without)

        try:
            reply, _ = await habits.ask(client, format.path, build, partial(read, stops=False), by_trying, opening=True)
        except Slow:
            if room == rooms[-1]:
                raise
        except Refused as refused:
            if room == rooms[-1] or not (about_length(refused) or about_value(refused, build(habits.without))):
                raise
        else:
            return reply
    raise AssertionError

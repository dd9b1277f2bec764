"""Small requests that show how a server behaves where its replies alone do not show it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Literal

from gnothi.concurrency import gather
from gnothi.errors import ModelUnavailable, UsageError
from gnothi.models.remote import tokens as measuring
from gnothi.models.remote.adapting import Habits
from gnothi.models.remote.client import Client, Missing
from gnothi.models.remote.refusals import PREFILL, Refused
from gnothi.models.remote.replies import InvalidReply, read
from gnothi.models.remote.requests import Format
from gnothi.models.remote.settings import CONTINUING
from gnothi.models.rendering import join
from gnothi.types import Decoding

SERIES = "one, two, three, four, five, six, seven,"
"""What a model goes on with surely, if it is any good; and then it would not say the same again."""
BEGUN, REST = "one, two, three, four, five, six, seven, eight, nine, ten, elev", re.compile(r"ens?\b", re.IGNORECASE)
"""A reply broken off within a word: only who goes on with it begins with the rest of the word."""
SAME = 0.3
"""Log-probabilities of one token may differ by so much, for another order of sums in 16 bits."""
TEMPERED = 0.15
"""By more than this they differ between temperatures where they are taken after it."""
SHOWN = 5
FIRST_RETRIES = 2
"""A server that cannot be reached at all is reported soon."""

Numbers = Literal["before", "after", "unknown"]
"""Whether log-probabilities are those of the model before the temperature is applied, as signals expect."""


async def continues(client: Client, format: Format, habits: Habits) -> str | None:
    """Why the server does not go on with a begun turn of the assistant; None where it does."""
    turns = [{"role": "user", "content": "Count from one to twelve in words."}, {"role": "assistant", "content": BEGUN}]

    def build(without: Collection[str]) -> dict[str, Any]:
        prompt_fields = {"messages": turns[:1]} if PREFILL in without else {"messages": turns, **CONTINUING}
        return format.body(prompt_fields, Decoding(max_tokens=8, stop=("\n\n",)), without=without)

    try:
        reply, _ = await habits.ask(client, format.path, build, partial(read, stops=False))
    except (Missing, ModelUnavailable, UsageError) as error:
        return error.message
    if PREFILL in habits.without:
        return habits.without[PREFILL]
    text = reply.choices[0].text
    return None if REST.match(text) else f"a begun reply was not continued but followed by {text[:40]!r}"


async def temperatures(client: Client, format: Format, habits: Habits) -> tuple[Numbers, bool, bool]:
    """Whether numbers are those before the temperature is applied; whether those of greedy replies can be used; and whether
    any can: some servers give 0, and no alternatives, whatever is said."""
    prompt_fields = (
        {"messages": [{"role": "user", "content": "Name a colour."}]} if format.chat else {"prompt": "My favourite colour is"}
    )

    async def ask(temperature: float) -> Mapping[str, float]:
        decoding = Decoding(max_tokens=1, temperature=temperature)
        body = format.body(prompt_fields, decoding, seed=1, logprobs=True, without=habits.without)
        more: dict[str, Any] = {"top_logprobs": SHOWN} if format.chat else {"logprobs": SHOWN}
        try:
            return await client.ask(format.path, body | more, first_tokens, FIRST_RETRIES)
        except Refused:
            return await client.ask(format.path, body, first_tokens, FIRST_RETRIES)

    if "temperature" in habits.without:
        return "unknown", True, True
    try:
        greedy, cold, warm = await gather(ask(0.0), ask(0.5), ask(1.0))
    except (UsageError, ModelUnavailable):
        return "unknown", True, True
    differs = _differ(cold, warm)
    given = [value for one in (greedy, cold, warm) for value in one.values()]
    return (
        ("unknown" if differs is None else "after" if differs else "before"),
        not _differ(greedy, warm),
        any(given) or not given,
    )


def _differ(one: Mapping[str, float], other: Mapping[str, float]) -> bool | None:
    """None where no token that can be compared is in both: one that is neither certain nor all but impossible."""
    comparable = [text for text in one.keys() & other.keys() if -4.0 < other[text] < -0.05]
    return any(abs(one[text] - other[text]) > TEMPERED for text in comparable) if comparable else None


def first_tokens(data: object) -> dict[str, float]:
    """The first token of a reply, and the likeliest in its place, with those of their log-probabilities that are numbers."""
    read(data, stops=False)
    assert isinstance(data, Mapping)
    logprobs = data["choices"][0].get("logprobs")
    logprobs_by_text: dict[str, float] = {}

    def note(text: object, value: object) -> None:
        if (number := measuring.number(value)) is not None:
            logprobs_by_text.setdefault(str(text), number)

    if isinstance(logprobs, Mapping):
        content = logprobs.get("content")
        for entry in content[:1] if isinstance(content, list) else ():
            if isinstance(entry, Mapping):
                note(entry.get("token"), entry.get("logprob"))
                for one in entry.get("top_logprobs") or ():
                    if isinstance(one, Mapping):
                        note(one.get("token"), one.get("logprob"))
        names, numbers, top = (logprobs.get(key) for key in ("tokens", "token_logprobs", "top_logprobs"))
        if isinstance(names, list) and isinstance(numbers, list):
            for text, value in list(zip(names, numbers, strict=False))[:1]:
                note(text, value)
        if isinstance(top, list) and top and isinstance(top[0], Mapping):
            for text, value in top[0].items():
                note(text, value)
    return logprobs_by_text


async def echoes(client: Client, model: str, more: Mapping[str, Any]) -> bool:
    """Whether the completions endpoint tells the log-probabilities of a given text."""
    body = {"model": model, "max_tokens": 1, "temperature": 0, "logprobs": 1, **more}
    try:
        reply = await client.ask("/completions", {**body, "prompt": SERIES}, partial(read, stops=False))
        first = next(iter(reply.choices[0].tokens or ()), None)
        whole = join(SERIES, first.text if first else "")
        tokens, _ = await client.ask("/completions", {**body, "prompt": whole, "echo": True}, echoed)
    except (Missing, Refused):
        return False
    if first is None or len(tokens) < 2 or not "".join(text for text, _ in tokens).endswith(whole[-4:]):
        return False
    # Some servers give each token the probability of the next place. So it must equal that of the token when it was generated.
    echoed_logprob = tokens[-1][1]
    return not first.text.strip() or (echoed_logprob is not None and abs(echoed_logprob - first.logprob) < SAME)


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
    tokens = [(str(text), measuring.number(one)) for text, one in zip(logprobs["tokens"], numbers, strict=True)]
    return tokens[:count], reply.bill.prompt_tokens if reply.bill else count

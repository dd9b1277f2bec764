"""A model behind an OpenAI-compatible API: OpenAI itself, vLLM, llama.cpp, Ollama, a gateway (docs/how-to/use-an-api.md).

Prompts go to the chat endpoint as messages, or to the (legacy) completions endpoint as plain text. Requests run concurrently
up to a limit, are tried again where that may help and keep within a budget (``models/remote/client.py``). What the server can
do is found out when the model is opened; fields that it refuses are left out, and ``metadata`` says which.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, PromptTooLong, UsageError
from gnothi.models.remote import budget as budgets
from gnothi.models.remote.client import Client, Refused
from gnothi.models.remote.features import Features, adapting, echoed, find_out, likeliest
from gnothi.models.remote.replies import Bill, Choice, InvalidReply, Reply, cut, read, without_start
from gnothi.models.remote.requests import TOP, Format
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.rendering import join
from gnothi.models.sampling import check
from gnothi.types import (
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Profile,
    Prompt,
    PromptStates,
    Samples,
    StateSpec,
)

PREFIX = "openai:"
MOST_AT_ONCE = 128
"""OpenAI's limit of ``n``."""
SEED_BITS = 31
"""Seeds of this size are understood everywhere."""


class OpenAIModel:
    """A LanguageModel. ``name`` is the server's name for the model, without the prefix of a spec."""

    def __init__(self, name: str, settings: RemoteSettings, features: Features, client: Client) -> None:
        self.name = PREFIX + name
        self.features = features
        self._model = name
        self._client = client
        self._format = Format(name, features.endpoint, features.prefill, settings)
        self._extra = settings.more()
        self._without = {*features.without, *settings.leave_out}
        self.capabilities = Capabilities(logprobs=features.logprobs, scoring=features.scoring != "off")
        self.profile = Profile()  # nothing is known of a model that others may change

    @property
    def metadata(self) -> Mapping[str, str]:
        return {
            "model": self.name,
            "base_url": self._client.url,
            "endpoint": self.features.endpoint,
            **({"server": self.features.owner} if self.features.owner else {}),
            "answer_so_far": "continued" if self.features.prefill or not self._format.chat else "told",
            **({"without": ", ".join(sorted(self._without))} if self._without else {}),
        }

    def rendered(self, prompt: Prompt) -> str:
        """All that a reply depends on in the prompt."""
        return json.dumps(self._format.shown(prompt), ensure_ascii=False, sort_keys=True)

    # --- continuing ----------------------------------------------------------------------------------------------------

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return (await self.sample(prompt, 1, decoding)).generations[0]

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        """n continuations: in one request where the server gives several, else in several requests.

        ``prompt_tokens`` of each is what the server read for all of them. Greedy, all are the same and asked for once.
        """
        if n < 1:
            raise InvalidSetting(f"cannot sample: got n = {n}, expected at least 1.")
        check(decoding)
        if hidden:
            raise self._no_states()
        if decoding.temperature == 0:
            (one,) = await self._request(prompt, decoding, 1, None)
            return Samples((one,) * n)
        at_once = 1 if "n" in self._without else min(n, MOST_AT_ONCE)
        first = await self._request(prompt, decoding, at_once, _seed(decoding.seed, 0))
        if len(first) < at_once:  # the server knows of n and ignores it
            self._without.add("n")
        more: list[tuple[Generation, ...]] = []
        if len(first) < n:
            step = 1 if "n" in self._without else MOST_AT_ONCE
            starts = range(len(first), n, step)
            seeds = [_seed(decoding.seed, row) for row in starts]
            asked = (self._request(prompt, decoding, min(step, n - row), seed) for row, seed in zip(starts, seeds, strict=True))
            more = await gather(*asked)
        rows = [*first, *(generation for part in more for generation in part)]
        if len(rows) < n:
            raise UsageError(f"{self.name}: asked for {n} samples, got {len(rows)}. Open the model again.")
        read_in_all = sum(part[0].prompt_tokens for part in (first, *more))
        return Samples(tuple(replace(row, prompt_tokens=read_in_all) for row in rows[:n]))

    async def _request(self, prompt: Prompt, decoding: Decoding, n: int, seed: int | None) -> tuple[Generation, ...]:
        """At most n continuations by one request, each up to its first stop string."""
        shown = self._format.shown(prompt)
        reply = await self._continue(shown, decoding, n, seed)
        if self._format.told_in_text(prompt):
            so_far = prompt.answer_so_far.strip()
            if decoding.stop and any(_only_repeats(choice.text, so_far) for choice in reply.choices):
                # The model says again what it was told; a stop string in that ended its reply before anything new.
                reply = await self._continue(shown, replace(decoding, stop=()), n, seed)
            reply = replace(reply, choices=tuple(_without_repetition(choice, so_far) for choice in reply.choices))
        choices = [cut(choice, partial(_end, decoding.stop), "stop") for choice in reply.choices]
        return _generations(tuple(choices[:n]), reply.bill or _guess(shown, choices))

    async def _continue(self, shown: Mapping[str, Any], decoding: Decoding, n: int, seed: int | None) -> Reply:
        logprobs = self.capabilities.logprobs

        def body() -> dict[str, Any]:
            return self._format.body(shown, decoding, n=n, seed=seed, logprobs=logprobs, without=self._without)

        def parse(data: object) -> Reply:
            reply = read(data, stops=bool(decoding.stop))
            if logprobs and any(choice.text and choice.tokens is None for choice in reply.choices):
                raise InvalidReply("the log-probabilities that were asked for are missing (<--set model.logprobs=off>)")
            return reply

        try:
            return await adapting(self._client, self._format.path, body, parse, self._without)
        except Refused as refused:
            self._refused(refused)

    def _refused(self, refused: Refused) -> NoReturn:
        limit = re.search(r"(?:maximum )?context (?:length|window|size)\D*(\d+)", refused.said, re.IGNORECASE)
        if limit is None:
            raise refused
        numbers = [int(number) for number in re.findall(r"\d+", refused.said)]
        tokens = max(numbers)
        if tokens <= int(limit[1]):
            raise refused
        raise PromptTooLong(self.name, tokens, int(limit[1])) from None

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:  # noqa: ARG002
        raise self._no_states()

    def _no_states(self) -> UsageError:
        return UsageError(f"{self.name} gives no hidden states: an API gives text. Use a model that runs in this process.")

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:  # noqa: ARG002
        raise UsageError(f"{self.name} gives no attentions: an API gives text. Use a model that runs in this process.")

    # --- scoring -------------------------------------------------------------------------------------------------------

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """By the probabilities of an echoed prompt; or of one token (setting ``model.scoring=choice``), see docs."""
        scoring = self.features.scoring
        if scoring == "off":
            raise UsageError(
                f"{self.name} scores no given text: its {self.features.endpoint} endpoint has no way to. "
                "Use <--set model.endpoint=completions> where the server offers it, or another model."
            )
        if not continuations:
            return ()
        shown = self._format.shown(prompt)
        try:
            if scoring == "choice":
                return await self._choose(shown, continuations)
            if self._format.chat:
                raise UsageError(f"{self.name}: setting model.scoring=echo needs model.endpoint=completions.")
            distinct = list(dict.fromkeys(continuations))
            scored = await gather(*(self._echo(str(shown["prompt"]), text) for text in distinct))
        except Refused as refused:
            self._refused(refused)
        found = dict(zip(distinct, scored, strict=True))
        return tuple(found[text] for text in continuations)

    async def _echo(self, before: str, continuation: str) -> ContinuationScore:
        whole = join(before, continuation)
        if len(whole) == len(before):
            return ContinuationScore(continuation, ())
        body = {"model": self._model, "prompt": whole, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        tokens, prompt_tokens = await self._client.ask("/completions", {**body, **self._extra}, echoed)
        if "".join(text for text, _ in tokens).endswith(whole):
            # Counted from the end: what a server puts before the prompt (BOS) has a text, too.
            count, left = 0, len(whole) - len(before)
            while left > 0:
                count += 1
                left -= len(tokens[-count][0])
        else:  # names of tokens that do not add up to their text
            alone, _ = await self._client.ask("/completions", {**body, "prompt": before, **self._extra}, echoed)
            count = max(0, len(tokens) - len(alone))
        numbers = [min(0.0, number or 0.0) for _, number in tokens[len(tokens) - count :]]
        if not numbers:
            raise UsageError(
                f"{self.name} does not echo the prompt any more: open the model again, or <--set model.scoring=off>."
            )
        return ContinuationScore(continuation, tuple(numbers), max(0, prompt_tokens - len(numbers)))

    async def _choose(self, shown: Mapping[str, Any], continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """Continuations of one token, by the likeliest first tokens; one that is not among them gets what they leave over,
        which is the most it can have."""
        decoding = Decoding(max_tokens=1)
        fields: dict[str, Any] = {"logprobs": True, "top_logprobs": TOP} if self._format.chat else {"logprobs": TOP}

        def body() -> dict[str, Any]:
            return {**self._format.body(shown, decoding, without=self._without), **fields}

        top, prompt_tokens = await self._client.ask(self._format.path, body(), likeliest)
        if not any(token.strip() == text.strip() for token in top for text in continuations):
            raise UsageError(
                f"{self.name}: none of {', '.join(map(repr, continuations))} is among the {len(top)} likeliest tokens "
                f"({', '.join(map(repr, list(top)[:5]))}, ...). model.scoring=choice is for continuations of one token."
            )
        rest = 1 - sum(math.exp(number) for number in top.values())
        bound = min(math.log(max(rest, 1e-9)), min(top.values()))
        scores = []
        for text in continuations:
            chances = [math.exp(number) for token, number in top.items() if token.strip() == text.strip()]
            number = math.log(sum(chances)) if chances and text.strip() else bound
            scores.append(ContinuationScore(text, (min(0.0, number),) if text.strip() else (), prompt_tokens))
        return tuple(scores)

    async def aclose(self) -> None:
        await self._client.aclose()


# --- opening -----------------------------------------------------------------------------------------------------------


def trial(name: str, settings: RemoteSettings, budget: budgets.Budget) -> Features:
    """Find out what the server can do, from any place, within an event loop or not. Raises ModelUnavailable and others."""

    async def look() -> Features:
        client = Client(PREFIX + name, settings, budget)
        try:
            return await find_out(client, name, settings)
        finally:
            await client.aclose()

    with ThreadPoolExecutor(1, "gnothi-trial") as thread:
        return thread.submit(asyncio.run, look()).result()


# --- parts -------------------------------------------------------------------------------------------------------------


def _seed(seed: int | None, row: int) -> int | None:
    """The seed of the request whose first sample is ``row``."""
    if seed is None:
        return None
    if row:
        seed = int.from_bytes(hashlib.blake2b(f"{seed} {row}".encode(), digest_size=8).digest(), "big")
    return seed & ((1 << SEED_BITS) - 1)


def _end(stop: Sequence[str], text: str) -> int | None:
    """Where the first stop string begins."""
    places = [text.index(one) for one in stop if one in text]
    return min(places) if places else None


def _only_repeats(text: str, so_far: str) -> bool:
    said = " ".join(text.split())
    return bool(said) and " ".join(so_far.split()).startswith(said)


def _without_repetition(choice: Choice, so_far: str) -> Choice:
    """``choice`` without the answer so far at its beginning, differences in white space aside."""
    pattern = r"\s*" + r"\s+".join(re.escape(word) for word in so_far.split())
    found = re.match(pattern, choice.text)
    return without_start(choice, found.end()) if found else choice


def _generations(choices: Sequence[Choice], bill: Bill) -> tuple[Generation, ...]:
    """Each with the server's count of tokens, which is shared evenly where it is one count for all; at least one, for some
    servers do not count the end (llama-cpp-python)."""
    each, left = divmod(bill.generated_tokens, len(choices))
    return tuple(
        Generation(choice.text, choice.tokens or (), choice.finish, bill.prompt_tokens, max(1, each + (row < left)))
        for row, choice in enumerate(choices)
    )


def _guess(shown: Mapping[str, Any], choices: Sequence[Choice]) -> Bill:
    """Counts for a server that tells none: four characters a token, or as many as came with log-probabilities."""
    generated = [max(1, len(choice.tokens or ()) or math.ceil(len(choice.text) / 4)) for choice in choices]
    return Bill(math.ceil(len(json.dumps(shown, ensure_ascii=False)) / 4), sum(generated))

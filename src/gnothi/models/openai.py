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
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from gnothi.concurrency import gather
from gnothi.errors import MALFORMED, InvalidSetting, PromptTooLong, UsageError
from gnothi.models.cache import Cached, key_of, open_store
from gnothi.models.remote import budget as budgets
from gnothi.models.remote.adapting import Habits
from gnothi.models.remote.client import Client
from gnothi.models.remote.description import NOT_OWN, described, numbers_count
from gnothi.models.remote.features import Features, excluded, find_out
from gnothi.models.remote.refusals import Refused
from gnothi.models.remote.replies import ENDED, Bill, Choice, Reply, cut, read, without_start
from gnothi.models.remote.requests import Format
from gnothi.models.remote.scoring import Scorer
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.sampling import check
from gnothi.models.store import Store
from gnothi.protocols import LanguageModel
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
FEW = 5
"""Of fewer tokens an empty text may be made: parts of a character, a token without one."""
SEED_BITS = 31
"""Seeds of this size are understood everywhere."""


class OpenAIModel:
    """A LanguageModel. ``name`` is the model's spec: the server's name for it follows the colon."""

    def __init__(self, name: str, settings: RemoteSettings, features: Features, client: Client) -> None:
        self.name = name
        self.features = features
        self._model = name.partition(":")[2]
        self._client = client
        self._client.sizes.window = features.window
        self._client.budget.add_model(name, lambda: self.metadata)
        self._settings = settings
        self._format = Format(self._model, features.endpoint, settings, features.thinking, bool(features.thoughts))
        self._extra = settings.more()
        self._habits = Habits(features.without)
        self._thoughts = features.thoughts
        self._lacking: Counter[str] = Counter()
        self._floors = 0
        self._begins_blank = False
        self.capabilities = Capabilities(logprobs=features.logprobs and features.greedy, scoring=features.scoring != "off")
        why = features.without.get("logprobs", "" if features.greedy else NOT_OWN)
        self.profile = Profile(lacks={"logprobs": why} if why else {})  # nothing else is known: others may change the model

    @property
    def metadata(self) -> Mapping[str, str]:
        known = (self.features, self._settings, self._format, self._habits.without)
        description = described(*known, self._thoughts, self._lacking, self._floors, self._client.sizes)
        return {"model": self.name, "base_url": self._client.url, **description}

    def rendered(self, prompt: Prompt) -> str:
        """All that a reply depends on in the prompt."""
        return json.dumps(self._format.prompt_fields(prompt, self._habits.without), ensure_ascii=False, sort_keys=True)

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
        without = self._habits.without
        at_once = 1 if "n" in without else min(n, MOST_AT_ONCE)
        first = await self._request(prompt, decoding, at_once, _seed(decoding.seed, decoding.first))
        if len(first) < at_once and "n" not in without:
            without["n"] = f"asked for {at_once} replies, the server gave {len(first)}"
        more: list[tuple[Generation, ...]] = []
        if len(first) < n:
            step = 1 if "n" in without else MOST_AT_ONCE
            starts = range(len(first), n, step)
            seeds = [_seed(decoding.seed, decoding.first + row) for row in starts]
            requests = (
                self._request(prompt, decoding, min(step, n - row), seed) for row, seed in zip(starts, seeds, strict=True)
            )
            more = await gather(*requests)
        rows = [*first, *(generation for part in more for generation in part)]
        if len(rows) < n:
            raise UsageError(f"{self.name}: asked for {n} samples, got {len(rows)}. Open the model again.")
        read_in_all = sum(part[0].prompt_tokens for part in (first, *more))
        return Samples(tuple(replace(row, prompt_tokens=read_in_all) for row in rows[:n]))

    async def _request(self, prompt: Prompt, decoding: Decoding, n: int, seed: int | None) -> tuple[Generation, ...]:
        """At most n continuations by one request, each up to its first stop string."""
        reply, request = await self._continue(prompt, decoding, n, seed)
        if self._format.answer_in_text(prompt, self._habits.without):
            so_far = prompt.answer_so_far.strip()
            if "stop" in request and any(_only_repeats(choice.text, so_far) for choice in reply.choices):
                # The model repeats the answer so far; a stop string in that ended its reply before anything new.
                reply, request = await self._continue(prompt, decoding, n, seed, stops=False)
            reply = replace(reply, choices=tuple(_without_repetition(choice, so_far) for choice in reply.choices))
        fresh = self._begins_turn(prompt)
        choices = [cut(choice, partial(_end, decoding.stop, fresh), "stop") for choice in reply.choices]
        if self._format.thinks:
            choices = [_shortened(choice, decoding.max_tokens) for choice in choices]
        return _generations(tuple(choices[:n]), reply.bill or _guess(request, choices))

    async def _continue(
        self, prompt: Prompt, decoding: Decoding, n: int, seed: int | None, stops: bool = True
    ) -> tuple[Reply, dict[str, Any]]:
        wanted = self.features.logprobs and numbers_count(self.features, decoding.temperature)
        fresh = self._begins_turn(prompt)
        sent = replace(decoding, stop=()) if not stops or (fresh and self._begins_blank) else decoding

        thinks = self._format.thinks

        def build(without: Collection[str]) -> dict[str, Any]:
            nonlocal thinks
            thinks = self._format.thinks
            prompt_fields = self._format.prompt_fields(prompt, without)
            return self._format.body(prompt_fields, sent, n=n, seed=seed, logprobs=wanted, without=without)

        def parse(data: object) -> Reply:
            return read(data, stops=bool(sent.stop) and not thinks)

        try:
            reply, request = await self._habits.ask(self._client, self._format.path, build, parse)
        except Refused as refused:
            self._refused(refused)
        if self.features.thoughts == ENDED:
            reply = replace(reply, choices=tuple(map(_inside, reply.choices)))
        if reply.place and not thinks:
            # It did not think at opening. A stop string or the limit may have cut the thought, or the answer's room.
            self._thoughts = reply.place
            self._format.thinks = True
            return await self._continue(prompt, decoding, n, seed, stops)
        if fresh and "stop" in request and any(one.finish == "stop" and not one.text.strip() for one in reply.choices):
            # Some models begin with an empty line, where a stop string then ends the reply.
            reply, request = await self._continue(prompt, decoding, n, seed, stops=False)
            self._begins_blank |= any(one.text.strip() for one in reply.choices)
            return reply, request
        for choice in reply.choices:
            self._check_answered(choice, decoding)
            self._floors += choice.floors
            if wanted and choice.text and choice.tokens is None:
                self._lacking[choice.lacking or "none came though they were asked for"] += 1
        return reply, request

    def _begins_turn(self, prompt: Prompt) -> bool:
        """Whether the reply is a turn of its own, not the rest of one."""
        return not prompt.answer_so_far.strip() or self._format.answer_in_text(prompt, self._habits.without)

    def _check_answered(self, choice: Choice, decoding: Decoding) -> None:
        """Raise UsageError for a reply that holds no answer: all its tokens went into a thought, shown or not."""
        if choice.text.strip():
            return
        cut_off = choice.finish == "length" and (self._format.thinks or (not choice.text and decoding.max_tokens >= FEW))
        if not (cut_off or choice.thought or not choice.closed):
            return
        if choice.finish == "length":
            thinks, room = self._format.thinks, self._settings.thinking_tokens
            limit = decoding.max_tokens + (room if thinks else 0)
            why = "all went into thoughts" if thinks else "a model that thinks out of sight does so"
            raise UsageError(
                f"{self.name}: the reply reached its limit of {limit:,} tokens before any answer: {why}. Give more room with "
                f"{'<--set model.thinking_tokens=...> or ' if thinks else ''}<--set max_tokens=...>, or less thinking with "
                "<--set model.thinking=...>."
            )
        less = "" if self._settings.thinking == "off" else "Ask for none with <--set model.thinking=off>, or look"
        raise UsageError(
            f"{self.name}: the reply holds a thought and no answer. {less or 'Look'} at how the server tells thoughts from "
            "answers (its reasoning parser)."
        )

    def _refused(self, refused: Refused) -> NoReturn:
        limit = re.search(r"(?:maximum )?context (?:length|window|size)\D*(\d+)", refused.reason, re.IGNORECASE)
        if limit is None:
            raise refused
        numbers = [int(number) for number in re.findall(r"\d+", refused.reason)]
        tokens = max(numbers)
        if tokens <= int(limit[1]):
            raise refused
        thought = self._settings.thinking_tokens if self._format.thinks else 0
        raise PromptTooLong(self.name, tokens, int(limit[1]), thought, ours=False) from None

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:  # noqa: ARG002
        raise self._no_states()

    def _no_states(self) -> UsageError:
        return UsageError(f"{self.name} gives no hidden states: an API gives text. Use a model that runs in this process.")

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:  # noqa: ARG002
        raise UsageError(f"{self.name} gives no attentions: an API gives text. Use a model that runs in this process.")

    # --- scoring -------------------------------------------------------------------------------------------------------

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """By the probabilities of an echoed prompt; or of one token (setting ``model.scoring=choice``), see docs."""
        if self.features.scoring == "off":
            raise UsageError(
                f"{self.name} scores no given text: its {self.features.endpoint} endpoint has no way to. "
                "Use <--set model.endpoint=completions> where the server offers it, or another model."
            )
        if not continuations:
            return ()
        scorer = Scorer(self.name, self._client, self._format, self._habits, self._extra)
        try:
            if self.features.scoring == "choice":
                return await scorer.choose(prompt, continuations)
            return await scorer.echo(prompt, continuations)
        except Refused as refused:
            self._refused(refused)

    async def aclose(self) -> None:
        await self._client.aclose()


# --- opening -----------------------------------------------------------------------------------------------------------


def trial(name: str, settings: RemoteSettings, budget: budgets.Budget) -> Features:
    """Find out what the server can do, from any place, within an event loop or not. Raises ModelUnavailable and others."""

    async def look() -> Features:
        client = Client(name, settings, budget)
        try:
            return await find_out(client, name.partition(":")[2], settings)
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


def _end(stop: Sequence[str], fresh: bool, text: str) -> int | None:
    """Where the first stop string begins, in a ``fresh`` answer not before its first word."""
    begins = len(text) - len(text.lstrip()) if fresh else 0
    places = [at for one in stop if (at := text.find(one, begins)) >= 0]
    return min(places) if places else None


def _inside(choice: Choice) -> Choice:
    """A reply of a model whose prompts open the thought: where the limit came before a closing mark, all of it is thought."""
    if choice.finish != "length" or choice.place or not choice.closed:
        return choice
    return replace(choice, text="", tokens=None, thought=choice.text.strip(), place=ENDED, closed=False, before=None)


def _only_repeats(text: str, so_far: str) -> bool:
    reply = " ".join(text.split())
    return bool(reply) and " ".join(so_far.split()).startswith(reply)


def _without_repetition(choice: Choice, so_far: str) -> Choice:
    """``choice`` without the answer so far at its beginning, differences in white space aside."""
    pattern = r"\s*" + r"\s+".join(re.escape(word) for word in so_far.split())
    match = re.match(pattern, choice.text)
    return without_start(choice, match.end()) if match else choice


def _shortened(choice: Choice, most: int) -> Choice:
    """The answer to a request with room for a thought, which that did not need, is no longer than was asked for."""
    if choice.tokens is None or len(choice.tokens) <= most:
        return choice
    tokens = choice.tokens[:most]
    return replace(choice, text="".join(token.text for token in tokens), tokens=tokens, finish="length")


def _generations(choices: Sequence[Choice], bill: Bill) -> tuple[Generation, ...]:
    """Each with the server's count of tokens, which is shared evenly where it is one count for all; at least one, for some
    servers do not count the end (llama-cpp-python)."""
    each, remainder = divmod(bill.generated_tokens, len(choices))
    thought = bill.thought_tokens // len(choices)
    generations = []
    for row, choice in enumerate(choices):
        generated = max(1, each + (row < remainder))
        of_these = min(generated, thought or _thought_tokens(choice, generated))
        tokens = choice.tokens or ()
        generations.append(
            Generation(choice.text, tokens, choice.finish, bill.prompt_tokens, generated, choice.thought, of_these)
        )
    return tuple(generations)


def _thought_tokens(choice: Choice, generated: int) -> int:
    """How many of the tokens were thought, where the bill does not say: those before the answer, else by length."""
    if not choice.thought:
        return 0
    return choice.before or round(generated * len(choice.thought) / len(choice.thought + choice.text))


def _guess(request: Mapping[str, Any], choices: Sequence[Choice]) -> Bill:
    """Counts for a server that tells none: four characters a token, or as many as came with log-probabilities."""
    prompt = request.get("messages", request.get("prompt"))
    generated = [max(1, len(one.tokens or ()) or math.ceil(len(one.text + one.thought) / 4)) for one in choices]
    return Bill(math.ceil(len(json.dumps(prompt, ensure_ascii=False)) / 4), sum(generated))


TRIAL_DAYS = 7
"""How long the outcome of a trial is relied upon: servers are updated."""


def open_remote(argument: str, settings: RemoteSettings, prefix: str = PREFIX) -> LanguageModel:
    """The model that the server calls so and, unless switched off, cached. ``prefix`` is what stands before its name in a spec.

    Raises ModelUnavailable where the server cannot be reached, has no such model or wants a key; MissingDependency;
    InvalidSetting; BudgetSpent.
    """
    name = argument.strip()
    if not name:
        raise UsageError(
            f"model {prefix + argument!r}: expected the server's name of a model after {prefix}, as in {prefix}NAME."
        )
    settings = settings.located()
    budget = budgets.current()
    budget.check(budgets.Prices(settings.price_in, settings.price_out))
    client = Client(prefix + name, settings, budget)  # before anything is asked: says what is missing
    store = open_store(settings, by_default=True)
    try:
        features = _features(prefix + name, settings, budget, store)
    except BaseException:
        if store is not None:
            store.close()
        raise
    model = OpenAIModel(prefix + name, settings, features, client)
    if store is None:
        return model
    identity = {"kind": prefix, "model": name, "settings": settings.identity(), "features": features.identity()}
    return Cached(model, store, identity, model.rendered)


def _features(spec: str, settings: RemoteSettings, budget: budgets.Budget, store: Store | None) -> Features:
    fixed = _fixed_by_settings(settings)
    if fixed is not None:
        return fixed
    key = key_of({"kind": PREFIX, "model": spec, "settings": settings.identity()}, {"operation": "trial"})
    stored = store.get(key) if store is not None else None
    if stored is not None and (remembered := _read(stored)) is not None:
        return remembered
    features = trial(spec, settings, budget)
    if store is not None:
        store.put(key, json.dumps({"at": time.time(), "features": features.as_dict()}).encode())
    return features


def _fixed_by_settings(settings: RemoteSettings) -> Features | None:
    """Where the settings leave nothing open."""
    endpoint, scoring = settings.endpoint, settings.scoring
    if endpoint == "auto" or scoring == "auto" or "auto" in (settings.logprobs, settings.prefill):
        return None
    return Features(endpoint, settings.logprobs == "on", scoring, excluded(settings))


def _read(stored: bytes) -> Features | None:
    try:
        data = json.loads(stored)
        if time.time() - data["at"] > TRIAL_DAYS * 86400:
            return None
        return Features.from_dict(data["features"])
    except MALFORMED:
        return None

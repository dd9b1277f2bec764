"""Log-probabilities of given texts: from an echoed prompt, or, for texts of one token, from the likeliest first tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.concurrency import gather
from gnothi.errors import UsageError
from gnothi.models.remote import tokens as measuring
from gnothi.models.remote.adapting import Habits
from gnothi.models.remote.client import Client
from gnothi.models.remote.probing import echoed
from gnothi.models.remote.replies import InvalidReply, read
from gnothi.models.remote.requests import TOP, Format
from gnothi.models.rendering import join
from gnothi.types import ContinuationScore, Decoding, Prompt


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores by the model ``name``; ``more`` are fields of every request."""

    name: str
    client: Client
    format: Format
    habits: Habits
    more: Mapping[str, Any]

    async def echo(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        if self.format.chat:
            raise UsageError(f"{self.name}: setting model.scoring=echo needs model.endpoint=completions.")
        before = str(self.format.prompt_fields(prompt)["prompt"])
        distinct = list(dict.fromkeys(continuations))
        scores = dict(zip(distinct, await gather(*(self._echo(before, text) for text in distinct)), strict=True))
        return tuple(scores[text] for text in continuations)

    async def _echo(self, before: str, continuation: str) -> ContinuationScore:
        whole = join(before, continuation)
        if len(whole) == len(before):
            return ContinuationScore(continuation, ())
        model = self.name.partition(":")[2]
        body = {"model": model, "prompt": whole, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        tokens, prompt_tokens = await self.client.ask("/completions", {**body, **self.more}, echoed)
        if "".join(text for text, _ in tokens).endswith(whole):
            # Counted from the end: what a server puts before the prompt (BOS) has a text, too.
            count, remaining = 0, len(whole) - len(before)
            while remaining > 0:
                count += 1
                remaining -= len(tokens[-count][0])
        else:  # names of tokens that do not add up to their text
            alone, _ = await self.client.ask("/completions", {**body, "prompt": before, **self.more}, echoed)
            count = max(0, len(tokens) - len(alone))
        numbers = [number for _, number in tokens[len(tokens) - count :] if number is not None]
        if not numbers:
            raise UsageError(
                f"{self.name} does not echo the prompt any more: open the model again, or <--set model.scoring=off>."
            )
        if len(numbers) < count:
            raise UsageError(
                f"{self.name}: {count - len(numbers)} of {count} tokens of {continuation!r:.60} have no log-probability, so "
                "the text cannot be scored. Use <--set model.scoring=off>, or another server."
            )
        return ContinuationScore(continuation, tuple(numbers), max(0, prompt_tokens - len(numbers)))

    async def choose(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """Continuations of one token; one that is not among the likeliest gets what they leave over, which is the most it can
        have."""
        if self.format.thinks:
            raise UsageError(
                f"{self.name} thinks before it answers, so its first token is no answer: model.scoring=choice cannot be used."
            )
        fields: dict[str, Any] = {"logprobs": True, "top_logprobs": TOP} if self.format.chat else {"logprobs": TOP}
        without = self.habits.without
        body = self.format.body(self.format.prompt_fields(prompt, without), Decoding(max_tokens=1), without=without)
        top, prompt_tokens = await self.client.ask(self.format.path, body | fields, likeliest)
        if not any(token.strip() == text.strip() for token in top for text in continuations):
            raise UsageError(
                f"{self.name}: none of {', '.join(map(repr, continuations))} is among the {len(top)} likeliest tokens "
                f"({', '.join(map(repr, list(top)[:5]))}, ...). model.scoring=choice is for continuations of one "
                "token: leave it out, or use a server that scores given texts."
            )
        rest = 1 - sum(math.exp(number) for number in top.values())
        bound = min(math.log(max(rest, 1e-9)), min(top.values()))
        scores = []
        for text in continuations:
            chances = [math.exp(number) for token, number in top.items() if token.strip() == text.strip()]
            number = math.log(max(sum(chances), math.exp(-700.0))) if chances and text.strip() else bound
            scores.append(ContinuationScore(text, (min(0.0, number),) if text.strip() else (), prompt_tokens))
        return tuple(scores)


def likeliest(data: object) -> tuple[dict[str, float], int]:
    """The likeliest first tokens of a reply with their log-probabilities, and the prompt's number of tokens. Those whose number
    is none are left out."""
    reply = read(data, stops=False)
    assert isinstance(data, Mapping)
    logprobs = data["choices"][0].get("logprobs")
    pairs: list[tuple[Any, Any]] = []
    if isinstance(logprobs, Mapping):
        content, top = logprobs.get("content"), logprobs.get("top_logprobs")
        if isinstance(content, list) and content and isinstance(content[0], Mapping):
            entries = content[0].get("top_logprobs") or []
            pairs = [(one.get("token"), one.get("logprob")) for one in entries if isinstance(one, Mapping)]
        elif isinstance(top, list) and top and isinstance(top[0], Mapping):
            pairs = list(top[0].items())
    by_text = {str(text): number for text, value in pairs if (number := measuring.number(value)) is not None}
    if not by_text:
        raise InvalidReply("expected the likeliest tokens, got none")
    return by_text, reply.bill.prompt_tokens if reply.bill else 0

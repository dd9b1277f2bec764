"""From a prompt and decoding settings to the JSON of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from gnothi.models.remote.refusals import PREFILL, ZERO
from gnothi.models.remote.settings import CONTINUING, RemoteSettings
from gnothi.models.rendering import Plain, Renderer, Tagged, messages
from gnothi.types import Decoding, Prompt

CHAT, COMPLETIONS = "/chat/completions", "/completions"
MOST_STOPS = 4
"""OpenAI's limit; further stop strings are looked for here."""
TOP = 20
"""OpenAI's limit of ``top_logprobs``."""
SMALL = 0.01
"""A temperature at which next to nothing is left to chance."""
RANDOM_SEED = "random_seed"
"""Mistral's name of ``seed``."""


class Format:
    """How prompts become requests for one endpoint of one server. ``thinking`` are fields that say whether to think;
    ``thinks``: replies begin with a thought, so that no stop string may be sent, which would end it, and there must be room
    for it."""

    def __init__(
        self,
        model: str,
        endpoint: Literal["chat", "completions"],
        settings: RemoteSettings,
        thinking: Mapping[str, Any] | None = None,
        thinks: bool = False,
    ) -> None:
        self.path = CHAT if endpoint == "chat" else COMPLETIONS
        self.chat = endpoint == "chat"
        self.thinking = dict(thinking or {})
        self.thinks = thinks
        self._model = model
        self._room = settings.thinking_tokens
        self._renderer: Renderer = Tagged() if settings.renderer == "tagged" else Plain()
        self._extra = settings.more()

    def prompt_fields(self, prompt: Prompt, without: Collection[str] = ()) -> dict[str, Any]:
        """The prompt's part of a request."""
        if self.chat:
            return chat(prompt, self._prefills(without))
        return {"prompt": self._renderer.render(prompt)}

    def answer_in_text(self, prompt: Prompt, without: Collection[str]) -> bool:
        """Whether the answer so far stands in the user's turn, so that the reply may repeat it."""
        return self.chat and not self._prefills(without) and bool(prompt.answer_so_far.strip())

    def body(
        self,
        prompt_fields: Mapping[str, Any],
        decoding: Decoding,
        *,
        n: int = 1,
        seed: int | None = None,
        logprobs: bool = False,
        without: Collection[str] = (),
    ) -> dict[str, Any]:
        """The whole request; ``without`` names fields that the server does not take."""
        temperature = SMALL if decoding.temperature == 0 and ZERO in without else decoding.temperature
        body: dict[str, Any] = {"model": self._model, **prompt_fields, "temperature": temperature}
        room = self._room if self.thinks else 0
        body["max_completion_tokens" if "max_tokens" in without else "max_tokens"] = decoding.max_tokens + room
        if decoding.temperature > 0:
            body |= {"top_p": decoding.top_p} if decoding.top_p < 1 else {}
            body |= {"top_k": decoding.top_k} if decoding.top_k > 0 else {}
            # Which of the two names a server understands is found out; the second is tried where the first is refused.
            body |= {RANDOM_SEED if "seed" in without else "seed": seed} if seed is not None else {}
        if decoding.stop and not self.thinks:
            body["stop"] = list(decoding.stop[:MOST_STOPS])
        if n > 1:
            body["n"] = n
        if logprobs and "logprobs" not in without:
            # llama-cpp-python gives a chat's log-probabilities only where alternatives are asked for, llama-server only where
            # there is to be one at least.
            body |= {"logprobs": True, "top_logprobs": 1} if self.chat else {"logprobs": 1}
        return {key: value for key, value in (body | self.thinking | self._extra).items() if key not in without}

    def _prefills(self, without: Collection[str]) -> bool:
        """While a model thinks, its turn begins with the thought, so that there is no begun one to go on with."""
        return PREFILL not in without and not self.thinks


def chat(prompt: Prompt, prefill: bool) -> dict[str, Any]:
    """Messages, and the answer so far as a begun turn of the assistant or as text in the last turn of the user."""
    turns: Sequence[Mapping[str, str]] = messages(prompt)
    so_far = prompt.answer_so_far.strip()
    if not so_far:
        return {"messages": turns}
    if prefill:
        return {"messages": [*turns, {"role": "assistant", "content": so_far}], **CONTINUING}
    text = f"{turns[-1]['content']}\n\nThe reply begins like this:\n{so_far}\n\nGive the rest of it, without repeating this."
    return {"messages": [*turns[:-1], {"role": "user", "content": text}]}

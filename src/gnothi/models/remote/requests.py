"""From a prompt and decoding settings to the JSON of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from gnothi.models.remote.settings import CONTINUING, RemoteSettings
from gnothi.models.rendering import Plain, Renderer, Tagged, messages
from gnothi.types import Decoding, Prompt

CHAT, COMPLETIONS = "/chat/completions", "/completions"
MOST_STOPS = 4
"""OpenAI's limit; further stop strings are looked for here."""
TOP = 20
"""OpenAI's limit of ``top_logprobs``."""


class Format:
    """How prompts become requests for one endpoint of one server."""

    def __init__(self, model: str, endpoint: Literal["chat", "completions"], prefill: bool, settings: RemoteSettings) -> None:
        self.path = CHAT if endpoint == "chat" else COMPLETIONS
        self.chat = endpoint == "chat"
        self._model = model
        self._prefill = prefill
        self._renderer: Renderer = Tagged() if settings.renderer == "tagged" else Plain()
        self._extra = settings.more()

    def shown(self, prompt: Prompt) -> dict[str, Any]:
        """The prompt's part of a request."""
        if self.chat:
            return chat(prompt, self._prefill)
        return {"prompt": self._renderer.render(prompt)}

    def told_in_text(self, prompt: Prompt) -> bool:
        """Whether the model is merely told of the answer so far, and may say it again."""
        return self.chat and not self._prefill and bool(prompt.answer_so_far.strip())

    def body(
        self,
        shown: Mapping[str, Any],
        decoding: Decoding,
        *,
        n: int = 1,
        seed: int | None = None,
        logprobs: bool = False,
        without: Collection[str] = (),
    ) -> dict[str, Any]:
        """The whole request; ``without`` names fields that the server does not take."""
        body: dict[str, Any] = {"model": self._model, **shown, "temperature": decoding.temperature}
        body["max_completion_tokens" if "max_tokens" in without else "max_tokens"] = decoding.max_tokens
        if decoding.temperature > 0:
            body |= {"top_p": decoding.top_p} if decoding.top_p < 1 else {}
            body |= {"top_k": decoding.top_k} if decoding.top_k > 0 else {}
            body |= {"seed": seed} if seed is not None else {}
        if decoding.stop:
            body["stop"] = list(decoding.stop[:MOST_STOPS])
        if n > 1:
            body["n"] = n
        if logprobs:
            # llama-cpp-python gives a chat's log-probabilities only where alternatives are asked for, be it none.
            body |= {"logprobs": True, "top_logprobs": 0} if self.chat else {"logprobs": 1}
        return {key: value for key, value in (body | self._extra).items() if key not in without}


def chat(prompt: Prompt, prefill: bool) -> dict[str, Any]:
    """Messages, and the answer so far as a begun turn of the assistant or told in the last turn of the user."""
    turns: Sequence[Mapping[str, str]] = messages(prompt)
    so_far = prompt.answer_so_far.strip()
    if not so_far:
        return {"messages": turns}
    if prefill:
        return {"messages": [*turns, {"role": "assistant", "content": so_far}], **CONTINUING}
    told = f"{turns[-1]['content']}\n\nThe reply begins like this:\n{so_far}\n\nGive the rest of it, without repeating this."
    return {"messages": [*turns[:-1], {"role": "user", "content": told}]}

"""The protocol every model speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gnothi.types import Capabilities, ContinuationScore, Decoding, Generation, Prompt, Samples, StateSpec


@runtime_checkable
class LanguageModel(Protocol):
    """A language model seen from a method. All calls may run concurrently; the implementation batches them."""

    @property
    def name(self) -> str:
        """What a user calls it: a hub id, a folder, ``lab``, ``openai:NAME``."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        """One continuation of the prompt."""
        ...

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: StateSpec | None = None) -> Samples:
        """n independent continuations; with ``hidden``, one state each, shape (n, hidden size)."""
        ...

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """Log-probabilities of each given continuation after the prompt, in order."""
        ...

    async def aclose(self) -> None:
        """Release what the model holds. Idempotent."""
        ...

"""How prompts are read and rows over them advanced: what the engine needs, whatever the architecture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

from gnothi.models.engine.states import Captured

T = TypeVar("T")

PrefillSteps = Generator[None, None, T]
"""Work that stops after each pass, so that others may have theirs; it returns what it came to."""


def run_to_end(work: PrefillSteps[T]) -> T:
    """Do all of it."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


class Reading(Protocol):
    """Prompts that were read, for looking at what may follow them. ``logits`` (prompts, vocabulary) after each."""

    logits: Tensor

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        """Logits after each of ``tokens[i]``, (tokens, vocabulary), fed after prompt ``index[i]``."""
        ...

    def close(self) -> None: ...


class DecodePath(ABC):
    """Rows keep the order of admission. ``budget``: bytes that may be held of what no row reads; ``reused_tokens``: tokens of
    prompts that did not have to be read, so far; ``shares_prompts``: whether a prompt's keys and values are held once, however
    many rows it has come to; ``together``: whether several prompts can be read and continued side by side."""

    name: str
    together = True
    shares_prompts = False
    budget = 0
    reused_tokens = 0

    @property
    def open(self) -> bool:
        """Whether rows can join now."""
        return True

    @property
    @abstractmethod
    def cached_tokens(self) -> int:
        """Tokens of prompts whose keys and values are held for the running rows."""

    def new_tokens(self, prompt: tuple[int, ...]) -> int:
        """How many tokens would have to be read to admit a prompt."""
        return len(prompt)

    def room(self, new: int) -> int:
        """How many tokens' memory it takes to hold ``new`` ones of a prompt."""
        return new

    @abstractmethod
    def admit(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[tuple[Tensor, Captured]]:
        """Read prompts, in passes of at most ``Network.piece`` tokens between which rows may advance, then add a row for each:
        logits (prompts, vocabulary) of the first token, states at the prompt's end. Closed before, it leaves nothing."""

    @abstractmethod
    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        """Feed one token per row (rows,): logits of the next one and the states at the fed one."""

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only, in this order. A row that is named several times goes on as several."""

    @abstractmethod
    def clear(self) -> None:
        """End all rows."""

    def forget(self) -> None:  # noqa: B027 - most paths hold nothing that no row reads
        """Give back the memory of what no row reads."""

    @abstractmethod
    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        """Prompts without rows, to look at what may follow them."""

    @abstractmethod
    def ahead(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Tensor]]:
        """Prompts of which nothing but the next token matters: places in ``prompts`` and logits (places, vocabulary) after
        these. About ``tokens`` tokens are read in one pass."""

    @abstractmethod
    def ends(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Captured]]:
        """Prompts of which nothing but the wanted states at their ends matters: places in ``prompts`` and the states (places,
        hidden size). About ``tokens`` tokens are read in one pass."""


class InStep(DecodePath):
    """All rows of a batch advance together, over the library's own cache, so new prompts wait until it is through. Row order is
    that of the prompts admitted, a prompt's rows one after another."""

    _running: Any = None

    @property
    def open(self) -> bool:
        return self._running is None

    def keep(self, rows: Tensor) -> None:
        if len(rows):
            self._select(rows)
        else:
            self.clear()

    @abstractmethod
    def _select(self, rows: Tensor) -> None:
        """Go on with these rows, at least one."""

    def clear(self) -> None:
        self._running = None

"""How alike two answers are, as a method may ask: BERTScore (``gnothi.metrics.bertscore``), or shared words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Likeness(Protocol):
    def __call__(self, answers: Sequence[str], references: Sequence[str]) -> list[float]:
        """Of each answer and its reference, at most 1."""
        ...

    async def aclose(self) -> None:
        """Release what it holds."""
        ...

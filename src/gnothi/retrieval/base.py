"""The protocol every retriever speaks."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from gnothi.types import ScoredPassage


@runtime_checkable
class Retriever(Protocol):
    """A source of evidence. Calls may run concurrently."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        """At most k passages, best first; ties broken by passage id; an empty query or no match gives an empty tuple."""
        ...

    async def aclose(self) -> None:
        """Release what the retriever holds. Idempotent."""
        ...

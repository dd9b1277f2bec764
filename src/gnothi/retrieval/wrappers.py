"""Wrappers around a retriever: cross-cutting concerns, so that no method and no backend has a line for them."""

from __future__ import annotations

import time

from gnothi.events import Searched, emit
from gnothi.protocols import Retriever
from gnothi.types import ScoredPassage


class Traced:
    """Emits ``events.Searched`` for every search that succeeds; a failed one raises and leaves no event."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    @property
    def name(self) -> str:
        return self._retriever.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        started = time.perf_counter()
        passages = await self._retriever.search(query, k)
        emit(Searched(query, passages, time.perf_counter() - started))
        return passages

    async def aclose(self) -> None:
        await self._retriever.aclose()

"""Wrappers around retrievers and re-rankers: cross-cutting concerns, so that no method and no backend has a line for them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gnothi.events import Reranked, Searched, emit
from gnothi.protocols import Reranker, Retriever
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


class TracedReranker:
    """Emits ``events.Reranked`` for every ranking that succeeds; of many texts, the best 100."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    @property
    def name(self) -> str:
        return self._reranker.name

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        started = time.perf_counter()
        scores = await self._reranker.score(query, texts)
        best = sorted(zip(texts, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
        emit(Reranked(self.name, query, tuple(best), len(texts), time.perf_counter() - started))
        return scores

    async def aclose(self) -> None:
        await self._reranker.aclose()


_SHOWN = 100

"""Wrappers around retrievers, graphs and re-rankers: cross-cutting concerns, of which no method and no backend has a line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Generic, TypeVar

from gnothi.events import Expanded, Linked, Reranked, Searched, emit
from gnothi.protocols import KnowledgeGraph, Reranker, Retriever
from gnothi.types import Mention, Neighbourhood, ScoredPassage

_SHOWN = 100
T = TypeVar("T", bound=Retriever | KnowledgeGraph | Reranker)


class _Wrapper(Generic[T]):
    """Has the name of what it wraps, and closes it."""

    def __init__(self, wrapped: T) -> None:
        self._wrapped = wrapped

    @property
    def name(self) -> str:
        return self._wrapped.name

    async def aclose(self) -> None:
        await self._wrapped.aclose()


class Traced(_Wrapper[Retriever]):
    """Emits ``events.Searched`` for every search that succeeds; a failed one raises and leaves no event."""

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        started = time.perf_counter()
        passages = await self._wrapped.search(query, k)
        emit(Searched(query, passages, time.perf_counter() - started))
        return passages


class TracedGraph(_Wrapper[KnowledgeGraph]):
    """Emits ``events.Linked`` for every text that was linked and ``events.Expanded`` for every neighbourhood."""

    async def link(self, text: str) -> tuple[Mention, ...]:
        started = time.perf_counter()
        mentions = await self._wrapped.link(text)
        emit(Linked(text, mentions, time.perf_counter() - started))
        return mentions

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        started = time.perf_counter()
        found = await self._wrapped.neighbourhood(nodes, hops, cap)
        emit(Expanded(tuple(nodes), hops, cap, len(found.facts), found.capped, time.perf_counter() - started))
        return found


class TracedReranker(_Wrapper[Reranker]):
    """Emits ``events.Reranked`` for every ranking that succeeds; of many texts, the best 100."""

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        started = time.perf_counter()
        scores = await self._wrapped.score(query, texts)
        best = sorted(zip(texts, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
        emit(Reranked(self.name, query, tuple(best), len(texts), time.perf_counter() - started))
        return scores

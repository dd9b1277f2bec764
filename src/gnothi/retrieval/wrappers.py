"""Wrappers around retrievers, graphs and re-rankers: cross-cutting concerns, of which no method and no backend has a line."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gnothi.events import Expanded, Linked, Reranked, Searched, emit
from gnothi.protocols import KnowledgeGraph, Reranker, Retriever
from gnothi.types import Mention, Neighbourhood, ScoredPassage


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


class TracedGraph:
    """Emits ``events.Linked`` for every text that was linked and ``events.Expanded`` for every neighbourhood."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    @property
    def name(self) -> str:
        return self._graph.name

    async def link(self, text: str) -> tuple[Mention, ...]:
        started = time.perf_counter()
        mentions = await self._graph.link(text)
        emit(Linked(text, mentions, time.perf_counter() - started))
        return mentions

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        started = time.perf_counter()
        found = await self._graph.neighbourhood(nodes, hops, cap)
        emit(Expanded(tuple(nodes), hops, cap, len(found.facts), found.capped, time.perf_counter() - started))
        return found

    async def aclose(self) -> None:
        await self._graph.aclose()


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

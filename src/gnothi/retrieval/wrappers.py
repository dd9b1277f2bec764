"""Wrappers around retrievers and graphs: cross-cutting concerns, so that no method and no backend has a line for them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gnothi.events import Expanded, Linked, Searched, emit
from gnothi.protocols import KnowledgeGraph, Retriever
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

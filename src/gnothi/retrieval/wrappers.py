"""Wrappers around retrievers, graphs and re-rankers: cross-cutting concerns, of which no method and no backend has a line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Generic, TypeVar

from gnothi import events
from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.own_code import running
from gnothi.protocols import Count, KnowledgeGraph, Reranker, Retriever
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, counter, ranked
from gnothi.types import Mention, Neighbourhood, Passage, ScoredPassage

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
        with running(f"index {self.name!r}"):
            passages = await self._wrapped.search(query, k)
        events.emit(events.Searched(query, passages, time.perf_counter() - started))
        return passages

    def filtered(self, filters: Filters) -> Retriever:
        return Traced(filtered(self._wrapped, filters))

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._wrapped, filters)

    async def keys(self) -> Sequence[str] | None:
        """Of the metadata of all passages; None where they are unknown."""
        list_keys = getattr(self._wrapped, "keys", None)
        return None if list_keys is None else await list_keys()


class TracedGraph(_Wrapper[KnowledgeGraph]):
    """Emits ``events.Linked`` for every text that was linked and ``events.Expanded`` for every neighbourhood."""

    async def link(self, text: str) -> tuple[Mention, ...]:
        started = time.perf_counter()
        mentions = await self._wrapped.link(text)
        events.emit(events.Linked(text, mentions, time.perf_counter() - started))
        return mentions

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        started = time.perf_counter()
        result = await self._wrapped.neighbourhood(nodes, hops, cap)
        events.emit(events.Expanded(tuple(nodes), hops, cap, len(result.facts), result.capped, time.perf_counter() - started))
        return result


class TracedReranker(_Wrapper[Reranker]):
    """Emits ``events.Reranked`` for every ranking that succeeds; of many texts, the best 100."""

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        started = time.perf_counter()
        scores = await self._wrapped.score(query, texts)
        best = sorted(zip(texts, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
        events.emit(events.Reranked(self.name, query, tuple(best), len(texts), time.perf_counter() - started))
        return scores


class Reranked:
    """Of the ``depth`` passages that ``retriever`` finds first, those that ``reranker`` scores highest; never more of them.

    A passage is read with its title. Closing it closes both.
    """

    def __init__(self, retriever: Retriever, reranker: Reranker, depth: int = 50) -> None:
        if depth < 1:
            raise InvalidSetting(f"the number of passages to re-rank: got {depth}, expected 1 or more. Pass a larger depth.")
        self._retriever, self._reranker, self._depth = retriever, reranker, depth

    @property
    def name(self) -> str:
        return f"{self._retriever.name}, re-ranked by {self._reranker.name}"

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        passages = [scored.passage for scored in await self._retriever.search(query, self._depth)]
        scores = await self._reranker.score(query, [titled_text(passage) for passage in passages]) if passages else ()
        return ranked((ScoredPassage(passage, score) for passage, score in zip(passages, scores, strict=True)), k)

    def filtered(self, filters: Filters) -> Retriever:
        return Reranked(filtered(self._retriever, filters), self._reranker, self._depth)

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._retriever, filters)

    async def aclose(self) -> None:
        await gather(self._retriever.aclose(), self._reranker.aclose())


def titled_text(passage: Passage) -> str:
    """A passage as a re-ranker reads it."""
    return f"{passage.title}: {passage.text}" if passage.title else passage.text

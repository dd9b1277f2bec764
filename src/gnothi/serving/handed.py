"""An index, and beside it what came with the question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest

from gnothi.concurrency import gather
from gnothi.events import Searched
from gnothi.protocols import Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import DEFAULT_WORDS
from gnothi.retrieval.ingest.split import split
from gnothi.retrieval.results import check_k
from gnothi.retrieval.wrappers import Traced
from gnothi.serving.attached import Attached
from gnothi.types import Passage, ScoredPassage

NAME = "attached"


def passages(attached: Sequence[Attached]) -> dict[Passage, Attached]:
    """Passages as an index has them, in order, each with what it is from."""
    return {
        Passage(f"{NAME}:{place}.{part}", text, one.title): one
        for place, one in enumerate(attached, start=1)
        for part, text in enumerate(split([one.text], DEFAULT_WORDS), start=1)
    }


def unread(given: Sequence[Passage], searches: Sequence[Searched], method: object) -> tuple[str, ...]:
    """A warning where nobody looked at what came with the question."""
    ids = {one.id for one in given}
    if any(found.passage.id in ids for search in searches for found in search.passages):
        return ()
    why = "no search was thought needed" if hasattr(method, "retriever") else "this method reads no passages"
    return (f"What came with the question was not read: {why}.",)


class Handed:
    """What came with the question and what the index finds, in turns, the former first: those that fit the query best, then
    the others as they came. Lives as long as a question."""

    def __init__(self, given: Sequence[Passage], index: Retriever | None) -> None:
        self._index = index
        self._given = Traced(_Ranked(given))

    @property
    def name(self) -> str:
        return NAME if self._index is None else self._index.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        sources = [self._given] if self._index is None else [self._given, self._index]
        rankings = await gather(*(one.search(query, k) for one in sources))
        found = [one.passage for place in zip_longest(*rankings) for one in place if one is not None][:k]
        return tuple(ScoredPassage(one, 1 / place) for place, one in enumerate(found, start=1))

    async def aclose(self) -> None:
        """The index is not this one's."""


class _Ranked:
    """All passages by how well they fit a query; those that do not fit come last, in their order."""

    name = NAME

    def __init__(self, given: Sequence[Passage]) -> None:
        self._given = given
        self._index: BM25Index | None = None

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        if self._index is None:
            self._index = await asyncio.to_thread(BM25Index.in_memory, self._given, NAME)
        fit = await self._index.search(query, k)
        ids = {one.passage.id for one in fit}
        return (*fit, *(ScoredPassage(one, 0.0) for one in self._given if one.id not in ids))[:k]

    async def aclose(self) -> None:
        """Nothing is held."""

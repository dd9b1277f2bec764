"""Searching for one thing, and for several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, zip_longest

from gnothi.concurrency import gather
from gnothi.protocols import Retriever
from gnothi.types import Passage, ScoredPassage


async def search(retriever: Retriever, query: str, k: int, known: Collection[str] = ()) -> tuple[Passage, ...]:
    """The ``k`` best passages but for those whose ids are ``known``."""
    passages = await retriever.search(query, k + len(known))
    return tuple(one.passage for one in passages if one.passage.id not in known)[:k]


async def in_turns(retriever: Retriever, queries: Iterable[str], k: int) -> tuple[Passage, ...]:
    """At most ``k`` passages, each once: those that any query ranks first, then those that any ranks second, and so on."""
    return tuple(one.passage for one in await ranked_in_turns(retriever, queries, k))


async def ranked_in_turns(retriever: Retriever, queries: Iterable[str], k: int) -> tuple[ScoredPassage, ...]:
    """As ``in_turns``, each with its score for the query that ranks it best."""
    rankings = await gather(*(retriever.search(query, k) for query in dict.fromkeys(queries)))
    merged: dict[str, ScoredPassage] = {}
    for one in chain.from_iterable(zip_longest(*rankings)):
        if one is not None:
            merged.setdefault(one.passage.id, one)
    return tuple(merged.values())[:k]

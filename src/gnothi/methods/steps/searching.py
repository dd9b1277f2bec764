"""Searching for one thing, and for several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, zip_longest

from gnothi.concurrency import gather
from gnothi.protocols import Retriever
from gnothi.types import Passage


async def search(retriever: Retriever, query: str, k: int, known: Collection[str] = ()) -> tuple[Passage, ...]:
    """The ``k`` best passages but for those whose ids are ``known``."""
    found = await retriever.search(query, k + len(known))
    return tuple(one.passage for one in found if one.passage.id not in known)[:k]


async def in_turns(retriever: Retriever, queries: Iterable[str], k: int) -> tuple[Passage, ...]:
    """At most ``k`` passages, each once: those that any query ranks first, then those that any ranks second, and so on."""
    rankings = await gather(*(retriever.search(query, k) for query in dict.fromkeys(queries)))
    merged: dict[str, Passage] = {}
    for one in chain.from_iterable(zip_longest(*rankings)):
        if one is not None:
            merged.setdefault(one.passage.id, one.passage)
    return tuple(merged.values())[:k]

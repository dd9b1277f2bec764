"""Searching for several things at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from gnothi.concurrency import gather
from gnothi.protocols import Retriever
from gnothi.types import Passage


async def in_turns(retriever: Retriever, queries: Iterable[str], k: int) -> tuple[Passage, ...]:
    """At most ``k`` passages, each once: those that any query ranks first, then those that any ranks second, and so on."""
    rankings = await gather(*(retriever.search(query, k) for query in dict.fromkeys(queries)))
    merged = {one.passage.id: one.passage for places in zip_longest(*rankings) for one in places if one is not None}
    return tuple(merged.values())[:k]

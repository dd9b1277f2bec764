"""The passages that fit a question best, by a re-ranker that reads both, or without one by the words they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.graph.retriever import overlap
from gnothi.protocols import Reranker
from gnothi.retrieval.wrappers import shown
from gnothi.types import Passage


async def best(reranker: Reranker | None, query: str, texts: Sequence[str], most: int | None = None) -> list[int]:
    """Places of the texts that fit the query best, the best first; of equally good ones the earlier. Without a re-ranker, by
    the words they share with the query."""
    if not texts:
        return []
    scores = overlap(query, texts) if reranker is None else await reranker.score(query, texts)
    return sorted(range(len(texts)), key=lambda place: -scores[place])[:most]


@dataclass(frozen=True, slots=True)
class Best:
    """Keeps the ``most`` best passages (None: all), the best first; of equally good ones the earlier. Emits Picked with kind
    ``rerank``."""

    reranker: Reranker | None = None
    most: int | None = None

    async def __call__(self, question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        if not passages:
            return ()
        order = await best(self.reranker, question, [shown(passage) for passage in passages])
        ranked = tuple(passages[place] for place in order)
        most = len(ranked) if self.most is None else self.most
        events.emit(events.Picked("rerank", question, ranked[:most], ranked[most:]))
        return ranked[:most]

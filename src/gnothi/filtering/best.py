"""The passages that fit a question best, by a re-ranker that reads both, or without one by the words they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.graph.retriever import overlap
from gnothi.protocols import Reranker
from gnothi.retrieval.reranked import shown
from gnothi.types import Passage


@dataclass(frozen=True, slots=True)
class Best:
    """Keeps the ``most`` best passages (None: all), the best first; of equally good ones the earlier. Emits Picked with kind
    ``rerank``."""

    reranker: Reranker | None = None
    most: int | None = None

    async def __call__(self, question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        if not passages:
            return ()
        texts = [shown(passage) for passage in passages]
        scores = overlap(question, texts) if self.reranker is None else await self.reranker.score(question, texts)
        ranked = [passages[place] for place in sorted(range(len(passages)), key=lambda place: -scores[place])]
        most = len(ranked) if self.most is None else self.most
        kept, dropped = tuple(ranked[:most]), tuple(ranked[most:])
        events.emit(events.Picked("rerank", question, kept, dropped))
        return kept

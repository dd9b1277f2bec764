"""A retriever whose results are put in another order: cheap search finds candidates, a re-ranker reads them."""

from __future__ import annotations

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.protocols import Reranker, Retriever
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage


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
        found = [scored.passage for scored in await self._retriever.search(query, self._depth)]
        scores = await self._reranker.score(query, [shown(passage) for passage in found]) if found else ()
        return ranked((ScoredPassage(passage, score) for passage, score in zip(found, scores, strict=True)), k)

    async def aclose(self) -> None:
        await gather(self._retriever.aclose(), self._reranker.aclose())


def shown(passage: Passage) -> str:
    """A passage as a re-ranker reads it."""
    return f"{passage.title}: {passage.text}" if passage.title else passage.text

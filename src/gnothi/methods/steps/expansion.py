"""Reflection for every method that searches: the query, and behind it what the model knows about the things it names.

IEKR's finding (Du and Zhao 2024) is that internal knowledge fills the gap between a question and the evidence it needs. That
may help any retriever, so the retriever is what is wrapped, and no method has a line for it.
"""

from __future__ import annotations

from gnothi.methods.steps.reflection import query, reflect, subjects
from gnothi.protocols import Count, KnowledgeGraph, LanguageModel, Retriever
from gnothi.retrieval.counting import counter
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import Filters
from gnothi.types import Question, ScoredPassage


class Expanded:
    """A retriever that searches with the query and the model's internal knowledge about it.

    ``graph`` tells what the query names; without one the model is asked about the query as a whole. Where it knows nothing, the
    query stays as it is."""

    def __init__(
        self,
        retriever: Retriever,
        model: LanguageModel,
        graph: KnowledgeGraph | None = None,
        max_tokens: int = 100,
        sure: float | None = None,
    ) -> None:
        self._retriever = retriever
        self._model = model
        self._graph = graph
        self._max_tokens = max_tokens
        self._sure = sure

    @property
    def name(self) -> str:
        return self._retriever.name

    async def search(self, query_text: str, k: int) -> tuple[ScoredPassage, ...]:
        """The wrapped retriever's results for the longer query."""
        if not query_text.strip() or k < 1:
            return await self._retriever.search(query_text, k)
        asked = Question("", query_text)
        internal = await reflect(self._model, await subjects(self._graph, asked), self._max_tokens, self._sure)
        return await self._retriever.search(" ".join(query(asked, internal).split()) if internal else query_text, k)

    def filtered(self, filters: Filters) -> Retriever:
        return Expanded(filtered(self._retriever, filters), self._model, self._graph, self._max_tokens, self._sure)

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._retriever, filters)

    async def aclose(self) -> None:
        """Closes the retriever; model and graph belong to others."""
        await self._retriever.aclose()

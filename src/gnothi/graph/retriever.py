"""A knowledge graph as a plain retriever: facts as passages, so that every method can read a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from gnothi.graph.lemmas import STOP_WORDS, singular, words
from gnothi.protocols import KnowledgeGraph, Reranker, Retriever
from gnothi.retrieval.results import check_k, ranked
from gnothi.schemes import Scheme
from gnothi.types import ScoredPassage

_DECIMALS = 4


class GraphRetriever:
    """Links the query, takes the facts within ``hops`` steps and ranks them by the re-ranker, or else by the words they share
    with the query."""

    def __init__(self, graph: KnowledgeGraph, reranker: Reranker | None = None, hops: int = 2, cap: int = 100) -> None:
        self._graph = graph
        self._reranker = reranker
        self._hops = hops
        self._cap = cap

    @property
    def name(self) -> str:
        return self._graph.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        mentions = await self._graph.link(query)
        if not mentions or k == 0:
            return ()
        around = await self._graph.neighbourhood([mention.node for mention in mentions], self._hops, self._cap)
        texts = [fact.text for fact in around.facts]
        scores = await self._reranker.score(query, texts) if self._reranker else overlap(query, texts)
        return ranked((ScoredPassage(fact.passage, score) for fact, score in zip(around.facts, scores, strict=True)), k)

    async def aclose(self) -> None:
        """Closes the graph. Idempotent."""
        await self._graph.aclose()
        if self._reranker:
            await self._reranker.aclose()


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    """For each text the weight of the query's words that it has, rare ones counting more, over the square root of its length:
    the share of a text that is asked for, as in the vector space model, with weights from the texts themselves."""
    query_words = set(_content(query))
    words_of = [_content(text) for text in texts]
    counts = Counter(word for content in words_of for word in set(content) & query_words)
    weights = {word: log(1 + len(texts) / count) for word, count in counts.items()}
    return [
        round(sum(weights.get(word, 0.0) for word in set(content)) / max(len(content), 1) ** 0.5, _DECIMALS)
        for content in words_of
    ]


def _content(text: str) -> list[str]:
    """Its words without stop words, in the singular."""
    return [singular(word.possessor or word.form) for word in words(text) if word.form not in STOP_WORDS]


def _open(argument: str) -> Retriever:
    from gnothi.graph.registry import open_graph

    return GraphRetriever(open_graph(argument))


def _fingerprint(argument: str) -> str:
    from gnothi.graph.registry import graph_fingerprint

    return graph_fingerprint(argument)


SCHEME = Scheme(open=_open, summary="the facts of a graph as passages", fingerprint=_fingerprint)

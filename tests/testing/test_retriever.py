from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from gnothi.protocols import KnowledgeGraph, Retriever
from gnothi.testing.conformance.graph import TRIPLES, GraphConformance
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.testing.retriever import ListedGraph, ScriptedRetriever
from gnothi.types import Passage, ScoredPassage


class TestConformance(RetrieverConformance):
    @pytest_asyncio.fixture
    async def retriever(self) -> AsyncIterator[Retriever]:
        by_id = {passage.id: passage for passage in CORPUS}
        yield ScriptedRetriever(
            {query: [by_id[first], by_id["p2" if first != "p2" else "p1"]] for query, first in EXPECTED.items()}
        )


class TestGraphConformance(GraphConformance):
    @pytest_asyncio.fixture
    async def graph(self) -> AsyncIterator[KnowledgeGraph]:
        yield ListedGraph(TRIPLES)


async def test_a_listed_graph_keeps_the_texts_it_was_to_link() -> None:
    graph = ListedGraph([("a b", "is", "c")])
    await graph.link("one")
    await graph.link("two")
    assert graph.texts == ["one", "two"]


async def test_a_list_answers_every_query_in_its_own_order() -> None:
    retriever = ScriptedRetriever([Passage("b", "second id first"), Passage("a", "first id second")])
    assert [result.passage.id for result in await retriever.search("anything", 5)] == ["b", "a"]
    assert [result.passage.id for result in await retriever.search("else", 1)] == ["b"]
    assert retriever.queries == ["anything", "else"]


async def test_given_scores_are_kept_and_decide_the_order() -> None:
    low, high = ScoredPassage(Passage("low", "x"), 1.5), ScoredPassage(Passage("high", "y"), 2.5)
    retriever = ScriptedRetriever({"q": [low, high]})
    assert await retriever.search("q", 5) == (high, low)
    assert await retriever.search("other", 5) == ()

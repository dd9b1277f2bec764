from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gnothi.errors import InvalidSetting
from gnothi.events import Searched, record
from gnothi.protocols import Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.wrappers import Reranked, Traced
from gnothi.testing.conformance.reranker import RerankerConformance
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.testing.retriever import FakeReranker, ScriptedRetriever
from gnothi.types import Passage
from tests.messages import refused


class TestTracedConformance(RetrieverConformance):
    @pytest_asyncio.fixture
    async def retriever(self) -> AsyncIterator[Retriever]:
        by_id = {passage.id: passage for passage in CORPUS}
        yield Traced(ScriptedRetriever({query: [by_id[first]] for query, first in EXPECTED.items()}))


async def test_a_search_is_one_event_with_its_results() -> None:
    traced = Traced(ScriptedRetriever([Passage("a", "text")], name="mine"))
    with record() as events:
        results = await traced.search("why", 3)
    (event,) = events
    assert isinstance(event, Searched)
    assert (event.query, event.passages) == ("why", results)
    assert event.seconds >= 0
    assert traced.name == "mine"


async def test_a_failed_search_raises_and_leaves_no_event() -> None:
    traced = Traced(ScriptedRetriever([]))
    with record() as events, pytest.raises(InvalidSetting):
        await traced.search("why", -1)
    assert events == []


class TestRerankedConformance(RetrieverConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def index(cls) -> Retriever:
        return BM25Index.in_memory(CORPUS, "corpus")

    @pytest_asyncio.fixture
    async def retriever(self, index: Retriever) -> AsyncIterator[Retriever]:
        opened = Reranked(index, FakeReranker())
        yield opened
        await opened.aclose()


class TestTheFake(RerankerConformance):
    @pytest.fixture
    def reranker(self) -> FakeReranker:
        return FakeReranker()


async def test_the_first_ones_found_are_read_with_their_titles_and_put_in_order() -> None:
    found = [Passage("a", "one"), Passage("b", "two", "Two"), Passage("c", "three"), Passage("d", "four")]
    read: list[str] = []

    def length(_: str, text: str) -> float:
        read.append(text)
        return len(text)

    retriever = Reranked(ScriptedRetriever(found), FakeReranker(length), depth=3)
    assert [scored.passage.id for scored in await retriever.search("q", 2)] == ["b", "c"]
    assert read == ["one", "Two: two", "three"]
    assert len(await retriever.search("q", 10)) == 3


def test_a_depth_of_nothing_is_a_mistake() -> None:
    with refused(InvalidSetting):
        Reranked(ScriptedRetriever([]), FakeReranker(), depth=0)

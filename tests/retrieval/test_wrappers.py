from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gnothi.errors import InvalidSetting
from gnothi.events import Searched, record
from gnothi.protocols import Retriever
from gnothi.retrieval.wrappers import Traced
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage


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

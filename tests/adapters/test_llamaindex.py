"""LlamaIndex' classes over Gnothi."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed: make test-beside")

from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.tools import QueryEngineTool

import gnothi
from gnothi.adapters.llamaindex import GnothiQueryEngine, GnothiRetriever
from tests.adapters.asked import DIRECTED, STARRED, lab, rag
from tests.command_line import KNOWN, covered_fact

__all__ = ["lab", "rag"]
SUBJECT, TRUE, UNKNOWN = covered_fact()


async def test_it_searches_only_what_the_model_does_not_know(rag: gnothi.Rag) -> None:
    retriever = GnothiRetriever(rag, k=2)
    assert retriever.retrieve(KNOWN) == []
    found = retriever.retrieve(UNKNOWN)
    assert len(found) == 2
    assert found[0].score is not None
    assert found[0].score > 0
    assert found[0].node.metadata["gnothi"]["knows"] is False
    assert found[0].node.get_content(MetadataMode.LLM).startswith(f"title: {SUBJECT}")
    assert "gnothi" not in found[0].node.get_content(MetadataMode.LLM)
    assert [one.node.node_id for one in await retriever.aretrieve(UNKNOWN)] == [one.node.node_id for one in found]


async def test_a_response_has_sources_and_decisions(rag: gnothi.Rag) -> None:
    engine = GnothiQueryEngine(rag)
    response = engine.query(UNKNOWN)
    assert str(response) == TRUE
    assert response.source_nodes[0].node.metadata["title"] == SUBJECT
    assert response.metadata is not None
    assert response.metadata["retrievals"] == 1
    known = await engine.aquery(KNOWN)
    assert (str(known), known.source_nodes) == ("Ada Bram", [])


def test_it_is_a_tool_for_agents(rag: gnothi.Rag) -> None:
    tool = QueryEngineTool.from_defaults(GnothiQueryEngine(rag), name="gnothi", description="Answers questions.")
    assert tool.call(UNKNOWN).content == TRUE


def test_an_engine_of_its_own_over_our_retriever(rag: gnothi.Rag) -> None:
    engine = RetrieverQueryEngine.from_args(GnothiRetriever(rag, k=1), llm=MockLLM())
    assert engine.query(UNKNOWN).source_nodes[0].node.metadata["title"] == SUBJECT


@pytest.mark.slow
def test_over_the_laboratory(lab: gnothi.Rag) -> None:
    engine = GnothiQueryEngine(lab)
    for question in (DIRECTED, STARRED):
        assert str(engine.query(question)) == lab.ask(question).text
        assert (GnothiRetriever(lab).retrieve(question) == []) == lab.know(question).knows

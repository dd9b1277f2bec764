"""LangChain's classes over Gnothi: its standard tests, and a chain of its own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="LangChain is not installed: make test-beside")

from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import gnothi
from gnothi.adapters.langchain import GnothiRetriever, GnothiRunnable, GnothiTool
from tests.adapters.asked import DIRECTED, STARRED, lab, rag
from tests.command_line import KNOWN, covered_fact

__all__ = ["lab", "rag"]
SUBJECT, TRUE, UNKNOWN = covered_fact()


def test_it_searches_only_what_the_model_does_not_know(rag: gnothi.Rag) -> None:
    retriever = GnothiRetriever(rag=rag, k=2)
    assert retriever.invoke(KNOWN) == []
    found = retriever.invoke(UNKNOWN)
    assert len(found) == 2
    assert found[0].metadata["title"] == SUBJECT
    assert found[0].id == found[0].metadata["id"]
    assert found[0].metadata["score"] >= found[1].metadata["score"]
    assert found[0].metadata["gnothi"]["knows"] is False
    assert len(retriever.invoke(UNKNOWN, k=1)) == 1


async def test_blocking_calls_inside_a_running_loop_work_as_those_of_others(rag: gnothi.Rag) -> None:
    retriever = GnothiRetriever(rag=rag, k=1)
    assert [one.id for one in retriever.invoke(UNKNOWN)] == [one.id for one in await retriever.ainvoke(UNKNOWN)]


def test_the_decisions_are_in_the_metadata(rag: gnothi.Rag) -> None:
    said = GnothiRunnable(rag).invoke(UNKNOWN)
    assert said.content == TRUE
    told = said.response_metadata
    assert told["retrievals"] == 1
    assert told["decisions"][0]["verdict"] == "retrieve"
    assert told["evidence"][0]["title"] == SUBJECT
    assert GnothiRunnable(rag).invoke(KNOWN).response_metadata["retrievals"] == 0


async def test_a_chain_with_batches_and_streams(rag: gnothi.Rag) -> None:
    chain = RunnableLambda(str.strip) | GnothiRunnable(rag) | StrOutputParser()
    assert chain.batch([f" {UNKNOWN}", KNOWN]) == [TRUE, "Ada Bram"]
    assert await chain.abatch([UNKNOWN, KNOWN]) == [TRUE, "Ada Bram"]
    assert "".join(chain.stream(KNOWN)) == "Ada Bram"


def test_a_question_that_is_none_is_refused(rag: gnothi.Rag) -> None:
    with pytest.raises(gnothi.errors.InvalidInput):
        GnothiRunnable(rag).invoke(" ")


def test_a_method_without_a_gate_cannot_tell(rag: gnothi.Rag) -> None:
    with (
        gnothi.open("rag", model=rag.opened.model, index=rag.opened.retriever) as always,
        pytest.raises(gnothi.errors.InvalidSetting),
    ):
        GnothiRetriever(rag=always).invoke(KNOWN)


def test_the_tool_gives_sources_to_read_and_decisions_to_keep(rag: gnothi.Rag) -> None:
    call = {"name": "ask_gnothi", "args": {"question": UNKNOWN}, "id": "1", "type": "tool_call"}
    message = GnothiTool(rag=rag).invoke(call)
    assert message.content.startswith(f"{TRUE}\nSources:\n[")
    assert message.artifact["decisions"]
    assert "from memory" in GnothiTool(rag=rag).invoke({"question": KNOWN})


@pytest.mark.slow
def test_a_chain_over_the_laboratory(lab: gnothi.Rag) -> None:
    """Passages for a generator of LangChain's own, found only where they are needed."""

    def generated(given: dict[str, Any]) -> str:
        return given["passages"][0].metadata["title"] if given["passages"] else "from memory"

    chain = {"passages": GnothiRetriever(rag=lab), "question": RunnablePassthrough()} | RunnableLambda(generated)
    known = [lab.know(question).knows for question in (DIRECTED, STARRED)]
    assert [found == "from memory" for found in chain.batch([DIRECTED, STARRED])] == known
    assert GnothiRunnable(lab).invoke(DIRECTED).content == lab.ask(DIRECTED).text

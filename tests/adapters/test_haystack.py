"""Components in pipelines of Haystack."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("haystack", reason="Haystack is not installed: make test-beside")

from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.routers import ConditionalRouter
from haystack.core.errors import PipelineRuntimeError

import gnothi
from gnothi.adapters.haystack import GnothiAnswerer, GnothiRetriever
from gnothi.errors import UsageError
from tests.adapters.asked import DIRECTED, STARRED, lab, rag
from tests.command_line import KNOWN, covered_fact

__all__ = ["lab", "rag"]
SUBJECT, TRUE, UNKNOWN = covered_fact()
ROUTES: list[dict[str, Any]] = [
    {"condition": "{{knows}}", "output": "{{draft}}", "output_name": "memory", "output_type": str},
    {"condition": "{{not knows}}", "output": "{{documents}}", "output_name": "found", "output_type": list},
]
TEMPLATE = "{% for one in documents %}{{one.meta.title}}: {{one.content}}\n{% endfor %}"


def routed(rag: Any) -> Pipeline:
    """The draft where the model knows, else a prompt with what was found."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", GnothiRetriever(rag, top_k=2))
    pipeline.add_component("router", ConditionalRouter(ROUTES, unsafe=True))
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents"]))
    for output in ("knows", "draft", "documents"):
        pipeline.connect(f"retriever.{output}", f"router.{output}")
    pipeline.connect("router.found", "prompt.documents")
    return pipeline


def test_a_router_goes_by_what_the_model_knows(rag: gnothi.Rag) -> None:
    pipeline = routed(rag)
    assert pipeline.run({"retriever": {"query": KNOWN}})["router"] == {"memory": "Ada Bram"}
    prompt = pipeline.run({"retriever": {"query": UNKNOWN}})["prompt"]["prompt"]
    assert prompt.startswith(f"{SUBJECT}: ")
    assert len(prompt.splitlines()) == 2


async def test_answers_with_documents_and_decisions_also_awaited(rag: gnothi.Rag) -> None:
    pipeline = Pipeline()
    pipeline.add_component("gnothi", GnothiAnswerer(rag))
    (answer,) = pipeline.run({"gnothi": {"query": UNKNOWN}})["gnothi"]["answers"]
    assert (answer.data, answer.query) == (TRUE, UNKNOWN)
    assert answer.documents[0].meta["title"] == SUBJECT
    assert answer.meta["retrievals"] == 1
    (awaited,) = (await pipeline.run_async({"gnothi": {"query": UNKNOWN}}))["gnothi"]["answers"]
    assert awaited.data == answer.data


def test_fewer_documents_for_one_query(rag: gnothi.Rag) -> None:
    found = GnothiRetriever(rag).run(UNKNOWN, top_k=1)
    assert [one.meta["title"] for one in found["documents"]] == [SUBJECT]
    assert found["documents"][0].score > 0
    assert found["decision"]["threshold"] == -6.0


def test_what_is_open_cannot_be_written_down(rag: gnothi.Rag) -> None:
    with pytest.raises(UsageError):
        routed(rag).dumps()


def test_mistakes_come_out_of_the_pipeline(rag: gnothi.Rag) -> None:
    with pytest.raises(PipelineRuntimeError):
        routed(rag).run({"retriever": {"query": " "}})
    assert rag.ask(KNOWN).text == "Ada Bram"


@pytest.mark.slow
def test_a_pipeline_from_yaml_over_the_laboratory(lab: gnothi.Rag) -> None:
    made = Pipeline()
    made.add_component("retriever", GnothiRetriever({"method": "seakr", "model": "lab", "index": "lab"}, top_k=2))
    made.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents"]))
    made.connect("retriever.documents", "prompt.documents")
    pipeline = Pipeline.loads(made.dumps(), allowed_modules=["gnothi.*"])
    for question in (DIRECTED, STARRED):
        said = pipeline.run({"retriever": {"query": question}}, include_outputs_from={"retriever"})
        knows = lab.know(question).knows
        assert said["retriever"]["knows"] is knows
        assert (said["prompt"]["prompt"] == "") is knows
    assert pipeline.dumps() == made.dumps()
    opened = pipeline.get_component("retriever").ready()
    pipeline.close()
    with pytest.raises(UsageError):
        opened.ask(DIRECTED)
    assert pipeline.run({"retriever": {"query": DIRECTED}})  # opened anew
    pipeline.close()

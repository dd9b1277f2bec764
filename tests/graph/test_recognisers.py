from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from gnothi.errors import MissingDependency, ModelUnavailable, UnknownName
from gnothi.graph.graph import Graph
from gnothi.graph.recognisers import Gliner, RecognisedGraph, Spacy, Span, open_recogniser
from gnothi.graph.registry import open_graph
from gnothi.protocols import KnowledgeGraph
from gnothi.testing.conformance.graph import TRIPLES, GraphConformance, names
from tests.messages import refused


class Whole:
    """Takes the whole text for a name."""

    name = "whole"

    def spans(self, text: str) -> Sequence[Span]:
        return [(0, len(text))]


class TestConformance(GraphConformance):
    @pytest_asyncio.fixture
    async def graph(self) -> AsyncIterator[KnowledgeGraph]:
        yield RecognisedGraph(Graph.in_memory(TRIPLES), Whole())


class Told:
    name = "told"

    def __init__(self, *places: Span) -> None:
        self.places = places

    def spans(self, text: str) -> Sequence[Span]:
        assert text
        return self.places


GRAPH = Graph.in_memory([("Orvel", "near", "sea"), ("May Orvel", "likes", "sea"), ("may", "is", "month")])
TEXT = "May Orvel may like the sea near Orvel."


async def test_only_what_was_recognised_is_linked_and_stands_where_it_stands() -> None:
    assert names(await GRAPH.link(TEXT)) == ["May Orvel", "sea", "Orvel"]
    mentions = await RecognisedGraph(GRAPH, Told((32, 37), (0, 9), (4, 9), (14, 18))).link(TEXT)
    assert [(mention.node, TEXT[mention.start : mention.end]) for mention in mentions] == [
        ("May Orvel", "May Orvel"),
        ("Orvel", "Orvel"),
    ]


async def test_spacy() -> None:
    spacy = pytest.importorskip("spacy", reason="the extra spacy is not installed")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [{"label": "PLACE", "pattern": "Orvel"}, {"label": "X", "pattern": "Nowhere"}]
    )
    recogniser = Spacy(pipeline)
    assert recogniser.name.startswith("spacy:en")
    assert list(recogniser.spans("Nowhere near Orvel")) == [(0, 7), (13, 18)]
    mentions = await RecognisedGraph(GRAPH, recogniser).link("Nowhere near the sea of Orvel")
    assert names(mentions) == ["Orvel"]


def test_a_pipeline_is_loaded_from_a_folder_and_a_missing_one_is_told(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="the extra spacy is not installed")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PLACE", "pattern": "Orvel"}])
    pipeline.to_disk(tmp_path / "pipeline")
    assert list(open_recogniser(f"spacy:{tmp_path / 'pipeline'}").spans("in Orvel")) == [(3, 8)]
    with refused(ModelUnavailable):
        open_recogniser("spacy:xx_none")


class FakeGliner:
    """Has GLiNER's two calls, as of its version 0.2."""

    @classmethod
    def from_pretrained(cls, name: str) -> FakeGliner:
        if name == "none":
            raise OSError("no such model")
        return cls()

    def predict_entities(self, text: str, labels: list[str], threshold: float = 0.5) -> list[dict[str, Any]]:
        assert labels
        assert 0 < threshold < 1
        start = text.find("Orvel")
        return [{"start": start, "end": start + 5, "text": "Orvel", "label": labels[0], "score": 0.9}] if start >= 0 else []


async def test_gliner(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("gliner")
    module.GLiNER = FakeGliner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gliner", module)
    recogniser = open_recogniser("gliner:some/model")
    assert isinstance(recogniser, Gliner)
    assert recogniser.name == "gliner:some/model"
    graph = RecognisedGraph(GRAPH, recogniser)
    assert names(await graph.link("the sea at Orvel")) == ["Orvel"]
    assert await graph.link(" ") == ()
    with refused(ModelUnavailable):
        open_recogniser("gliner:none")


@pytest.mark.parametrize("kind", ["spacy", "gliner"])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with refused(MissingDependency):
        open_recogniser(f"{kind}:x")


@pytest.mark.parametrize("spec", ["", "spacy", "flair:x", "spacy:"])
def test_other_recognisers_are_unknown(spec: str) -> None:
    with refused(UnknownName):
        open_graph("lab", spec)

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from gnothi.events import Expanded, Linked, record
from gnothi.graph.building import build_graph
from gnothi.graph.graph import Graph
from gnothi.graph.retriever import GraphRetriever, overlap
from gnothi.graph.templates import Templates
from gnothi.protocols import Retriever
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.wrappers import TracedGraph
from gnothi.testing.conformance.retriever import RetrieverConformance
from gnothi.testing.retriever import ListedGraph
from gnothi.types import Fact, Passage

TRIPLES = [
    ("Orvel lighthouse", "built by", "Dana Brisk"),
    ("Orvel lighthouse", "built in", "the year 1820"),
    ("Orvel", "known for", "salted plums"),
    ("Dana Brisk", "painter of", "birds"),
    ("heron", "eats", "fish"),
    ("Ümlaut 東京", "has", 'odd: "title" <tags>'),
]
SAID = Templates.of({relation: f"{{head}} {relation} {{tail}}." for _, relation, _ in TRIPLES})


def passage(triple: tuple[str, str, str]) -> Passage:
    head, relation, tail = triple
    return Fact(head, relation, tail, SAID.template(relation).say(head, tail)).passage


class TestConformance(RetrieverConformance):
    corpus = tuple(map(passage, TRIPLES))
    expected = {  # noqa: RUF012
        "Who was the Orvel lighthouse built by?": corpus[0].id,
        "In which year was the Orvel lighthouse built?": corpus[1].id,
        "What salted plums is Orvel known for?": corpus[2].id,
        "which fish do herons eat": corpus[4].id,
        "what does ümlaut 東京 have": corpus[5].id,
    }

    @pytest_asyncio.fixture
    async def retriever(self) -> AsyncIterator[Retriever]:
        yield GraphRetriever(Graph.in_memory(TRIPLES, SAID))


class Lengths:
    """A re-ranker that likes short texts."""

    name = "lengths"
    closed = 0

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        assert query
        return tuple(-float(len(text)) for text in texts)

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_reranker_decides_where_there_is_one() -> None:
    reranker = Lengths()
    retriever = GraphRetriever(ListedGraph(TRIPLES), reranker)
    found = await retriever.search("Dana Brisk and the Orvel lighthouse", 10)
    assert [result.score for result in found] == sorted((-float(len(result.passage.text)) for result in found), reverse=True)
    assert len(found) == 3
    await retriever.aclose()
    assert reranker.closed == 1


def test_overlap_prefers_rare_words_and_short_texts() -> None:
    texts = [
        "dogs want bones",
        "dogs want sleep",
        "cats want sleep",
        "dogs want bones and a great many other things that matter",
    ]
    scores = overlap("Which bone would a dog like?", texts)
    assert scores[0] > scores[3] > scores[1] > scores[2] == 0
    assert overlap("dog", []) == []


async def test_a_folder_with_a_graph_opens_as_an_index(tmp_path: Path) -> None:
    source = tmp_path / "t.tsv"
    source.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), encoding="utf-8")
    build_graph([source], tmp_path / "graph")
    (best,) = await open_index(tmp_path / "graph").search("Who painted birds, Dana Brisk?", 1)
    assert best.passage.text == "Dana Brisk painter of birds."


async def test_a_traced_graph_tells_what_it_linked_and_found() -> None:
    graph = TracedGraph(Graph.in_memory([*TRIPLES, ("Orvel", "near", "heron"), ("Orvel", "near", "sea")], SAID))
    with record() as events:
        mentions = await graph.link("a heron in Orvel")
        found = await graph.neighbourhood([mention.node for mention in mentions], 1, 2)
    linked, expanded = events
    assert isinstance(linked, Linked)
    assert linked.mentions == mentions
    assert isinstance(expanded, Expanded)
    assert (expanded.nodes, expanded.hops, expanded.cap) == (("heron", "Orvel"), 1, 2)
    assert (expanded.facts, expanded.capped) == (len(found.facts), ("Orvel",))
    assert linked.as_dict()["mentions"][0] == {"node": "heron", "start": 2, "end": 7}
    assert expanded.as_dict()["event"] == "expanded"


async def test_nothing_is_found_where_nothing_is_linked() -> None:
    assert await GraphRetriever(ListedGraph(TRIPLES)).search("no name here", 5) == ()


@pytest.mark.parametrize("k", [0, 1])
async def test_k_bounds_the_facts(k: int) -> None:
    assert len(await GraphRetriever(ListedGraph(TRIPLES)).search("heron", k)) == k

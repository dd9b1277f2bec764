from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import networkx as nx
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from gnothi.graph.building import build_graph
from gnothi.graph.folder import open_folder
from gnothi.graph.graph import Graph
from gnothi.graph.templates import Templates
from gnothi.protocols import KnowledgeGraph
from gnothi.testing.conformance.graph import TRIPLES, GraphConformance, triples
from gnothi.testing.retriever import ListedGraph


class TestInMemory(GraphConformance):
    @pytest_asyncio.fixture
    async def graph(self) -> AsyncIterator[KnowledgeGraph]:
        yield Graph.in_memory(TRIPLES)


class TestFromAFolder(GraphConformance):
    @pytest_asyncio.fixture
    async def graph(self, tmp_path: Path) -> AsyncIterator[KnowledgeGraph]:
        source = tmp_path / "triples.tsv"
        source.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), encoding="utf-8")
        build_graph([source], tmp_path / "graph")
        yield open_folder(tmp_path / "graph")


NODES = st.sampled_from([f"node {letter}{letter}" for letter in "abcdefghij"])
SOME = st.lists(st.tuples(NODES, st.sampled_from(["r", "s"]), NODES), min_size=1, max_size=60)


@given(SOME, st.lists(NODES, max_size=3), st.integers(0, 4), st.integers(1, 12))
async def test_neighbourhoods_are_those_of_a_naive_graph(
    rows: list[tuple[str, str, str]], start: list[str], hops: int, cap: int
) -> None:
    said = Templates.of({relation: f"{{head}} {relation} {{tail}}." for relation in "rs"})
    naive = await ListedGraph(rows).neighbourhood(start, hops, cap)
    found = await Graph.in_memory(rows, said).neighbourhood(start, hops, cap)
    assert triples(found) == triples(naive)
    assert found.capped == naive.capped


@given(SOME, NODES, st.integers(0, 4))
async def test_without_a_cap_they_are_those_of_networkx(rows: list[tuple[str, str, str]], start: str, hops: int) -> None:
    reference = nx.MultiGraph()
    reference.add_edges_from((head, tail, relation) for head, relation, tail in rows)
    near = nx.single_source_shortest_path_length(reference, start, hops - 1) if start in reference and hops else {}
    expected = {row for row in rows if row[0] in near or row[2] in near}
    found = await Graph.in_memory(rows).neighbourhood([start], hops, 1000)
    assert set(triples(found)) == expected
    assert found.capped == ()


async def test_facts_are_said_by_their_templates_and_merged_relations_as_one() -> None:
    said = Templates.from_dict({"relations": {"PartOf": "{head} is part of {tail}."}, "merged": {"HasA": "-PartOf"}})
    graph = Graph.in_memory([("hand", "PartOf", "arm"), ("hand", "HasA", "thumb"), ("arm", "HasA", "hand")], said)
    found = await graph.neighbourhood(["hand"], 1, 10)
    assert [fact.text for fact in found.facts] == ["Hand is part of arm.", "Thumb is part of hand."]
    assert [fact.relation for fact in found.facts] == ["PartOf", "PartOf"]
    assert len(graph) == 2
    assert graph.nodes == 3


async def test_no_triples_make_a_graph_that_finds_nothing() -> None:
    graph = Graph.in_memory([])
    assert await graph.link("anything at all") == ()
    assert (await graph.neighbourhood(["anything"], 2, 5)).facts == ()


async def test_long_names_are_nodes_but_not_linked() -> None:
    graph = Graph.in_memory([("a name of far too many words", "is", "x1")])
    assert await graph.link("it says a name of far too many words here") == ()
    assert len((await graph.neighbourhood(["a name of far too many words"], 1, 5)).facts) == 1

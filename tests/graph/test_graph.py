"""None"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from hashlib import blake2b
from pathlib import Path

import networkx as nx
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from gnothi.graph.building import build_graph
from gnothi.graph.graph import Graph, open_folder
from gnothi.graph.lemmas import LONGEST, PLURALS, SIMPLEMMA, STOP_WORDS, forms, hashes, lemmatiser, singular, words
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


def linked(names: Sequence[str], text: str, how: str = PLURALS) -> list[tuple[str, str]]:
    """(node, what the text says) for each mention."""
    graph = Graph.in_memory([(name, "is", "qqq zzz") for name in names], lemmatiser=how)
    return [(mention.node, text[mention.start : mention.end]) for mention in graph.link_blocking(text)]


def test_a_name_as_it_stands_goes_before_a_lemma() -> None:
    assert linked(["dog", "dogs"], "two Dogs and a dog") == [("dogs", "Dogs"), ("dog", "dog")]
    assert linked(["dog", "cat"], "two dogs") == [("dog", "dogs")]
    assert linked(["cats"], "one cat") == [("cats", "cat")]


def test_with_a_dictionary_irregular_forms_are_found() -> None:
    pytest.importorskip("simplemma")
    assert linked(["child", "go to school"], "The children went to schools", SIMPLEMMA) == [
        ("child", "children"),
        ("go to school", "went to schools"),
    ]


def test_the_longest_goes_first_whether_as_it_stands_or_by_lemma() -> None:
    assert linked(["ice", "ice cream", "cream"], "ice creams, ice") == [("ice cream", "ice creams"), ("ice", "ice")]


@pytest.mark.parametrize("apostrophe", ["'", "’"])
def test_a_possessive_ending_is_no_part_of_a_name(apostrophe: str) -> None:
    assert linked(["dog"], f"the dog{apostrophe}s bowl") == [("dog", "dog")]
    assert linked(["dog's bowl", "dog"], f"the dog{apostrophe}s bowl") == [("dog's bowl", f"dog{apostrophe}s bowl")]
    assert linked(["dog's bowl"], f"two dog{apostrophe}s bowls") == [("dog's bowl", f"dog{apostrophe}s bowls")]
    assert linked(["dog"], f"the dogs{apostrophe} bowls") == [("dog", "dogs")]


def test_stop_words_and_pronouns_alone_name_nothing() -> None:
    assert linked(["it", "the", "who", "be", "in it", "x"], "Who is in it? The X.") == []
    assert linked(["The Who", "What Is It"], "Who? What is it that the who sang?") == []
    assert linked(["the band"], "The band plays") == [("the band", "The band")]


def test_hyphens_and_underscores_part_words() -> None:
    assert linked(["ice_cream", "well-known fact"], "ice cream is a well known fact") == [
        ("ice_cream", "ice cream"),
        ("well-known fact", "well known fact"),
    ]


def test_of_names_that_differ_in_case_the_one_that_is_written_wins_else_that_with_more_facts() -> None:
    triples = [("Polish", "is", "a1"), ("polish", "is", "b1"), ("polish", "is", "b2")]
    graph = Graph.in_memory(triples)
    assert [mention.node for mention in graph.link_blocking("Polish polish POLISH")] == ["Polish", "polish", "polish"]


def test_what_stands_in_brackets_is_not_said() -> None:
    graph = Graph.in_memory([("Paris (Texas)", "in", "t1"), ("Paris (France)", "in", "t2"), ("Paris (France)", "is", "t3")])
    assert [mention.node for mention in graph.link_blocking("off to Paris")] == ["Paris (France)"]


WORDS = st.sampled_from(["dog", "dogs", "cat", "house", "red", "box", "boxes", "the", "of"])
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=LONGEST).map(" ".join), min_size=1, max_size=8, unique=True)


@given(NAMES, st.lists(WORDS, max_size=12).map(" ".join))
def test_links_are_those_of_a_naive_search(names: list[str], text: str) -> None:
    """Every run of words tried in turn, against all names."""
    nameable = [name for name in names if forms(name)]
    said = text.split()
    expected: list[str] = []
    place = 0
    while place < len(said):
        for length in range(min(LONGEST, len(said) - place), 0, -1):
            run = said[place : place + length]
            here = [name for name in nameable if name.split() == run]
            lemmas = [singular(word) for word in run]
            alike = [name for name in nameable if [singular(word) for word in name.split()] == lemmas]
            alike.sort(key=lambda name: (name.split() != lemmas, name.encode()))
            if not STOP_WORDS.issuperset(run) and (here or alike):
                expected.append((here or alike)[0])
                place += length
                break
        else:
            place += 1
    graph = Graph.in_memory([(name, "is", "qqq zzz yyy xxx www") for name in names])
    assert [mention.node for mention in graph.link_blocking(text)] == expected


@given(st.text(max_size=60))
def test_words_stand_where_they_say(text: str) -> None:
    for word in words(text):
        assert text[word.start : word.end].lower().replace("’", "'") == word.form


@given(st.lists(st.text(max_size=20), unique=True, max_size=30))
def test_hashes_are_stable_and_differ(keys: list[str]) -> None:
    first = hashes(keys).tolist()
    assert first == hashes(keys).tolist()
    assert len(set(first)) == len({key.encode("utf-8", "replace") for key in keys})


def test_the_hash_is_that_of_every_machine() -> None:
    assert hashes(["ice cream"]).tolist() == [int.from_bytes(blake2b(b"ice cream", digest_size=8).digest(), "little")]


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("dogs", "dog"),
        ("boxes", "box"),
        ("parties", "party"),
        ("glass", "glass"),
        ("bus", "bus"),
        ("gas", "gas"),
        ("dog's", "dog"),
    ],
)
def test_regular_plurals(plural: str, one: str) -> None:
    assert singular(plural) == one
    assert lemmatiser(PLURALS)(plural) == one

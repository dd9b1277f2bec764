"""What every KnowledgeGraph must do.

Subclass ``GraphConformance`` in a test file and give it a fixture ``graph`` that yields one of ``TRIPLES``.
"""

from __future__ import annotations

import asyncio

import pytest

from gnothi.errors import InvalidSetting
from gnothi.protocols import KnowledgeGraph
from gnothi.types import Fact, Mention, Neighbourhood

# A chain from the lighthouse to an island, a hub with eight spokes, a fact from a node to itself, letters of all kinds.
TRIPLES = (
    ("lighthouse of Orvel", "built by", "Dana Brisk"),
    ("Dana Brisk", "born in", "Orvel"),
    ("Orvel", "lies on", "Heron Island"),
    ("Heron Island", "part of", "Ümlaut 東京"),
    *((f"spoke {letter}", "belongs to", "wheel") for letter in "stuvwxyz"),
    ("mirror", "shows", "mirror"),
    ("Dana Brisk", "likes", "wheel"),
)
ODD_TEXTS = ("", " ", "\x00", "?!", "word " * 3000, "x" * 100_000, "🦉", "东京 東京", "\n\t", "'s 's", "a|b|c")


def names(mentions: tuple[Mention, ...]) -> list[str]:
    return [mention.node for mention in mentions]


def triples(neighbourhood: Neighbourhood) -> list[tuple[str, str, str]]:
    return [(fact.head, fact.relation, fact.tail) for fact in neighbourhood.facts]


class GraphConformance:
    async def test_is_a_graph_with_a_name(self, graph: KnowledgeGraph) -> None:
        assert isinstance(graph, KnowledgeGraph)
        assert graph.name

    async def test_links_names_in_order_and_says_where_they_stand(self, graph: KnowledgeGraph) -> None:
        text = "Did Dana Brisk ever sail to heron island, or to Ümlaut 東京?"
        mentions = await graph.link(text)
        assert names(mentions) == ["Dana Brisk", "Heron Island", "Ümlaut 東京"]
        assert [text[mention.start : mention.end] for mention in mentions] == ["Dana Brisk", "heron island", "Ümlaut 東京"]

    async def test_the_longest_name_wins_and_names_do_not_overlap(self, graph: KnowledgeGraph) -> None:
        assert names(await graph.link("Who built the lighthouse of Orvel near Orvel?")) == ["lighthouse of Orvel", "Orvel"]

    async def test_a_part_of_a_word_is_no_name(self, graph: KnowledgeGraph) -> None:
        assert names(await graph.link("The Orvelians left wheelbarrow and mirrorball")) == []

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    async def test_any_text_can_be_linked(self, graph: KnowledgeGraph, text: str) -> None:
        mentions = await graph.link(text)
        edges = [edge for mention in mentions for edge in (mention.start, mention.end)]
        assert edges == sorted(edges)
        assert all(0 <= mention.start < mention.end <= len(text) for mention in mentions)

    async def test_steps_lead_in_either_direction_and_nearer_facts_come_first(self, graph: KnowledgeGraph) -> None:
        chain = list(TRIPLES[:4])
        assert triples(await graph.neighbourhood(["Heron Island"], 1, 10)) == chain[2:4]
        facts = triples(await graph.neighbourhood(["Heron Island"], 2, 10))
        assert facts == [*chain[2:4], chain[1]]
        assert triples(await graph.neighbourhood(["Heron Island"], 0, 10)) == []

    async def test_each_fact_comes_once_with_its_sentence(self, graph: KnowledgeGraph) -> None:
        neighbourhood = await graph.neighbourhood(["Dana Brisk", "Orvel", "Dana Brisk"], 3, 100)
        assert len(set(triples(neighbourhood))) == len(neighbourhood.facts)
        assert set(triples(neighbourhood)) == set(TRIPLES) - {("mirror", "shows", "mirror")}
        for fact in neighbourhood.facts:
            assert isinstance(fact, Fact)
            assert fact.head.lower() in fact.text.lower()
            assert fact.tail.lower() in fact.text.lower()

    async def test_a_node_that_points_to_itself(self, graph: KnowledgeGraph) -> None:
        assert triples(await graph.neighbourhood(["mirror"], 3, 1)) == [("mirror", "shows", "mirror")]

    async def test_of_a_hub_only_so_many_facts_are_taken_and_it_is_named(self, graph: KnowledgeGraph) -> None:
        neighbourhood = await graph.neighbourhood(["wheel"], 1, 3)
        assert len(neighbourhood.facts) == 3
        assert neighbourhood.capped == ("wheel",)
        assert await graph.neighbourhood(["wheel"], 1, 3) == neighbourhood
        # The hub's cap is not the spokes': each of them leads to the hub and no further.
        assert len((await graph.neighbourhood(["spoke s", "spoke t", "spoke u", "spoke v"], 1, 3)).facts) == 4
        assert (await graph.neighbourhood(["wheel"], 1, 9)).capped == ()

    async def test_nodes_it_does_not_hold_are_left_aside(self, graph: KnowledgeGraph) -> None:
        assert await graph.neighbourhood(["nobody", ""], 2, 10) == Neighbourhood(())
        assert len((await graph.neighbourhood(["nobody", "mirror"], 2, 10)).facts) == 1
        assert await graph.neighbourhood([], 2, 10) == Neighbourhood(())

    @pytest.mark.parametrize(("hops", "cap"), [(-1, 5), (2, 0), (1, -3)])
    async def test_numbers_that_mean_nothing_are_the_callers_mistake(self, graph: KnowledgeGraph, hops: int, cap: int) -> None:
        with pytest.raises(InvalidSetting, match="got"):
            await graph.neighbourhood(["wheel"], hops, cap)

    async def test_concurrent_calls_equal_sequential_ones(self, graph: KnowledgeGraph) -> None:
        nodes = [[node] for triple in TRIPLES for node in (triple[0], triple[2])]
        sequential = [await graph.neighbourhood(node, 2, 4) for node in nodes]
        assert list(await asyncio.gather(*(graph.neighbourhood(node, 2, 4) for node in nodes))) == sequential

    async def test_closing_twice_is_fine(self, graph: KnowledgeGraph) -> None:
        await graph.aclose()
        await graph.aclose()

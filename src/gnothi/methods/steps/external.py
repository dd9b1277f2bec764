"""Facts about a question's entities: which are candidates, and how they are read (IEKR, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gnothi.concurrency import gather
from gnothi.methods.steps.reflection import Subject
from gnothi.protocols import KnowledgeGraph
from gnothi.types import Fact, Passage

Showing = Literal["subjects", "facts", "one"]


async def candidates(graph: KnowledgeGraph, about: Sequence[Subject], hops: int, cap: int, most: int) -> tuple[Fact, ...]:
    """Facts within ``hops`` steps of the subjects, ``cap`` of each node, ``most`` in all, nearer ones first. Where there are
    more, each subject keeps its share of them, its nearer ones."""
    nodes = [one.node for one in about if one.node]
    if not nodes:
        return ()
    facts = (await graph.neighbourhood(nodes, hops, cap)).facts
    if len(facts) <= most:
        return facts
    around = await gather(*(graph.neighbourhood([node], hops, cap) for node in nodes))
    kept = in_turn([one.facts for one in around], most)
    return tuple(fact for fact in facts if fact in kept)


def in_turn(lists: Sequence[Sequence[Fact]], most: int) -> set[Fact]:
    """``most`` facts, of each list the next one in turn that no other has given."""
    taken: set[Fact] = set()
    left = [iter(one) for one in lists]
    while left:
        for one in tuple(left):
            if len(taken) == most:
                return taken
            fact = next((fact for fact in one if fact not in taken), None)
            if fact is None:
                left.remove(one)
            else:
                taken.add(fact)
    return taken


def shown(facts: Sequence[Fact], showing: Showing) -> tuple[Passage, ...]:
    """The facts as a reader sees them, best first: ``facts`` one passage each; ``subjects`` one for each subject, titled with
    it and in the order of its best fact; ``one`` all in one, as in the paper (equation 5)."""
    if showing == "facts":
        return tuple(fact.passage for fact in facts)
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.head if showing == "subjects" else "", []).append(fact)
    return tuple(
        Passage(" ".join(fact.passage.id for fact in group), " ".join(fact.text for fact in group), title)
        for title, group in groups.items()
    )

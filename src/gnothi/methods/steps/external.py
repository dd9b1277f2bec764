"""Facts about a question's entities: which are candidates, and how they are read (IEKR, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gnothi.methods.steps.reflection import Subject
from gnothi.protocols import KnowledgeGraph
from gnothi.types import Fact, Passage

Showing = Literal["subjects", "facts", "one"]


async def candidates(graph: KnowledgeGraph, about: Sequence[Subject], hops: int, cap: int, most: int) -> tuple[Fact, ...]:
    """Facts within ``hops`` steps of the subjects, ``cap`` of each node, ``most`` in all: the nearer ones."""
    nodes = [one.node for one in about if one.node]
    if not nodes:
        return ()
    return (await graph.neighbourhood(nodes, hops, cap)).facts[:most]


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

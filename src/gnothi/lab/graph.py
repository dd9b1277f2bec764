"""A world's library as a knowledge graph: its triples, said in the laboratory's own sentences."""

from __future__ import annotations

from gnothi import lab
from gnothi.graph.graph import Graph
from gnothi.graph.templates import Templates
from gnothi.lab.language import RELATIONS
from gnothi.lab.world import World


def templates() -> Templates:
    """The canonical statement of each relation."""
    return Templates.of({relation.name: relation.statements[0].format(s="{head}", o="{tail}") for relation in RELATIONS})


def graph(name: str = "lab", world: World | None = None) -> Graph:
    """In memory; what the library contradicts or tells of a namesake is in it, as in the passages."""
    return Graph.in_memory(lab.triples(world), templates(), name)

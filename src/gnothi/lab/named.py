"""What the laboratory offers under the name ``lab`` to whoever names an index, a graph or a data set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial

from gnothi import lab
from gnothi.datasets.registry import DataSet
from gnothi.errors import UnknownName
from gnothi.graph.graph import Graph
from gnothi.graph.templates import Templates
from gnothi.lab import worlds
from gnothi.lab.language import RELATIONS
from gnothi.lab.questions import DEFAULT_MIX, KINDS, Kind
from gnothi.lab.world import World
from gnothi.protocols import KnowledgeGraph, Retriever
from gnothi.schemes import Scheme
from gnothi.types import Question


def templates() -> Templates:
    """The canonical statement of each relation."""
    return Templates.of({relation.name: relation.statements[0].format(s="{head}", o="{tail}") for relation in RELATIONS})


def graph(name: str = "lab", world: World | None = None) -> Graph:
    """In memory; what the library contradicts or tells of a namesake is in it, as in the passages."""
    return Graph.in_memory(lab.triples(world), templates(), name)


NAME = "lab"
TRAINING_NAME = "lab-train"
COUNT = 500
"""Questions of a data set, unless more are asked for."""


def spec(name: str, argument: str) -> str:
    return f"{name}:{argument}" if argument else name


def _index(argument: str) -> Retriever:
    return _build_index(argument) if argument else _built_in()


def _build_index(argument: str) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index

    return BM25Index.in_memory(lab.passages(lab.world(argument)), spec(NAME, argument))


@cache
def _built_in() -> Retriever:
    """Made once: commands of one process, and the set-ups of a server, open it again and again."""
    return _build_index("")


def _graph(argument: str) -> KnowledgeGraph:
    return graph(spec(NAME, argument), lab.world(argument))


def _fingerprint(argument: str) -> str:
    return json.dumps(worlds.declaration(lab.world(argument)))


def world_and_kind(name: str, argument: str) -> tuple[World, Kind | None]:
    """Of what stands behind a data set's ``NAME:``: a world, a kind of question, or both, as in ``lab:1:two_hop``. Raises
    UnknownName, or InvalidInput as ``worlds.find``."""
    head, _, last = argument.rpartition(":")
    kind: Kind | None = next((kind for kind in KINDS if kind == last), None)
    try:
        return lab.world(argument if kind is None else head), kind
    except UnknownName:
        known = [name, *(f"{name}:{kind}" for kind in KINDS), f"{name}:SEED", f"{name}:SEED:KIND"]
        raise UnknownName("data set", f"{name}:{argument}", known) from None


def _questions(name: str, argument: str, limit: int | None) -> Sequence[Question]:
    """At least ``limit``, of the kind that ``argument`` names, or of all in the default mix."""
    world, kind = world_and_kind(name, argument)
    build = lab.training_questions if name == TRAINING_NAME else lab.questions
    return build(world, kind, max(limit or 0, COUNT))


_MIX = ", ".join(f"{share:.0%} {kind}" for kind, share in DEFAULT_MIX.items())

INDEX = Scheme(
    open=_index, summary="the library of the laboratory's invented world; lab:SEED of another", fingerprint=_fingerprint
)
GRAPH = Scheme(open=_graph, summary="that library as a graph; lab:SEED likewise", fingerprint=_fingerprint)
QUESTIONS = DataSet(
    open=partial(_questions, NAME),
    summary=f"{COUNT} questions about the laboratory's world: {_MIX} (more with --limit); "
    f"{NAME}:SEED and {NAME}:SEED:KIND of another world",
    parts={kind: f"{COUNT} questions of the kind {kind}" for kind in KINDS},
)
TRAINING = DataSet(
    open=partial(_questions, TRAINING_NAME),
    summary=f"questions to learn from, none about a fact that {NAME} asks for; {TRAINING_NAME}:KIND for one kind",
)

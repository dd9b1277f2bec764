"""What the laboratory offers under the name ``lab`` to whoever names an index, a graph or a data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gnothi import lab
from gnothi.datasets.named import DataSet
from gnothi.errors import UnknownName
from gnothi.lab.questions import DEFAULT_MIX, KINDS, Kind
from gnothi.protocols import KnowledgeGraph, Retriever
from gnothi.schemes import Scheme
from gnothi.types import Question

NAME = "lab"
TRAINING_NAME = "lab-train"
COUNT = 500
"""Questions of a data set, unless more are asked for."""


def _index(_: str) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index

    return BM25Index.in_memory(lab.passages(), NAME)


def _graph(_: str) -> KnowledgeGraph:
    from gnothi.lab.graph import graph

    return graph()


def _questions(name: str, argument: str, limit: int | None) -> Sequence[Question]:
    """At least ``limit``, of the kind that ``argument`` names, or of all in the default mix."""
    if argument and argument not in KINDS:
        raise UnknownName("data set", f"{name}:{argument}", [name, *(f"{name}:{kind}" for kind in KINDS)])
    kind: Kind | None = next((kind for kind in KINDS if kind == argument), None)
    made = lab.training_questions if name == TRAINING_NAME else lab.questions
    return made(lab.world(), kind, max(limit or 0, COUNT))


_MIX = ", ".join(f"{share:.0%} {kind}" for kind, share in DEFAULT_MIX.items())

INDEX = Scheme(open=_index, summary="the library of the laboratory's invented world")
GRAPH = Scheme(open=_graph, summary="that library as a graph")
QUESTIONS = DataSet(
    open=partial(_questions, NAME),
    summary=f"{COUNT} questions about the laboratory's world: {_MIX} (more with --limit)",
    parts={kind: f"{COUNT} questions of the kind {kind}" for kind in KINDS},
)
TRAINING = DataSet(
    open=partial(_questions, TRAINING_NAME),
    summary=f"questions to learn from, none about a fact that {NAME} asks for; {TRAINING_NAME}:KIND for one kind",
)

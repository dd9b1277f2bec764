"""Graphs by what users call them: ``lab``, a folder, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

from pathlib import Path

from gnothi.protocols import KnowledgeGraph
from gnothi.registry import Registry
from gnothi.retrieval.wrappers import TracedGraph
from gnothi.schemes import Scheme, as_scheme, split

GRAPHS: Registry[Scheme[KnowledgeGraph]] = Registry(
    "graph", "gnothi.graphs", also={"folder": "gnothi.graph.registry:FOLDER", "lab": "gnothi.lab.named:GRAPH"}
)


def open_graph(spec: str) -> KnowledgeGraph:
    """The knowledge graph of a spec, traced. Raises IndexUnavailable, UnknownName for a scheme that does not exist, or
    BrokenPlugin."""
    scheme, argument = _scheme(spec)
    return TracedGraph(scheme.open(argument))


def graph_fingerprint(spec: str) -> str:
    """Of the facts and the sentences that say them; empty where a graph does not say. Raises as ``open_graph``."""
    scheme, argument = _scheme(spec)
    return scheme.fingerprint(argument)


def _scheme(spec: str) -> tuple[Scheme[KnowledgeGraph], str]:
    name, argument = split(GRAPHS, spec)
    return as_scheme(GRAPHS.find(name or "folder")), argument


def _open_folder(argument: str) -> KnowledgeGraph:
    from gnothi.graph.graph import open_folder

    return open_folder(argument)


def _fingerprint(argument: str) -> str:
    from gnothi.graph.graph import fingerprint

    return fingerprint(Path(argument))


FOLDER = Scheme(open=_open_folder, summary="a folder made by `gnothi index build --graph`", fingerprint=_fingerprint)

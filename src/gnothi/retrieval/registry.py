"""Indexes and re-rankers by what users call them: ``lab``, a folder, a hub id, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

import os

from gnothi.protocols import Reranker, Retriever
from gnothi.registry import Registry
from gnothi.retrieval.folder import kind_of
from gnothi.retrieval.wrappers import Traced, TracedReranker
from gnothi.schemes import Scheme, as_scheme, split

RETRIEVERS: Registry[Scheme[Retriever]] = Registry(
    "index",
    "gnothi.retrievers",
    home="gnothi.retrieval.kinds",
    attribute="SCHEME",
    also={"graph": "gnothi.graph.retriever:SCHEME", "lab": "gnothi.lab.named:INDEX"},
)
RERANKERS: Registry[Scheme[Reranker]] = Registry(
    "re-ranker", "gnothi.rerankers", also={"cross_encoder": "gnothi.retrieval.rerank:SCHEME"}
)


def open_index(spec: str | os.PathLike[str]) -> Retriever:
    """The retriever of a spec, its searches traced (``events.Searched``). A folder says itself of which kind it is.

    Raises IndexUnavailable, UnknownName for a scheme that does not exist, or BrokenPlugin."""
    scheme, argument = _index(os.fspath(spec))
    return Traced(scheme.open(argument))


def index_fingerprint(spec: str | os.PathLike[str]) -> str:
    """What changes when an index or graph is built anew from other content; empty where it does not say. Raises as
    ``open_index``."""
    scheme, argument = _index(os.fspath(spec))
    return scheme.fingerprint(argument)


def open_reranker(spec: str) -> TracedReranker:
    """The re-ranker of a spec (``lab``, a folder or a hub id, or SCHEME:ARGUMENT), its rankings traced (``events.Reranked``).

    Raises ModelUnavailable, MissingDependency, UnknownName for a scheme that does not exist, or BrokenPlugin."""
    scheme, argument = _reranker(spec)
    return TracedReranker(scheme.open(argument))


def reranker_fingerprint(spec: str) -> str:
    """What changes with the re-ranker's weights; empty where it does not say. Raises as ``open_reranker``."""
    scheme, argument = _reranker(spec)
    return scheme.fingerprint(argument)


def _reranker(spec: str) -> tuple[Scheme[Reranker], str]:
    name, argument = split(RERANKERS, spec)
    return as_scheme(RERANKERS.find(name or "cross_encoder")), argument


def _index(spec: str) -> tuple[Scheme[Retriever], str]:
    name, argument = split(RETRIEVERS, spec)
    kind = name or kind_of(argument)
    return as_scheme(RETRIEVERS.find(kind if kind in RETRIEVERS else "bm25")), argument

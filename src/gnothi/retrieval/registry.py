"""Indexes and re-rankers by what users call them: ``lab``, a folder, a hub id, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gnothi.errors import InvalidSetting
from gnothi.protocols import Reranker, Retriever
from gnothi.registry import Registry
from gnothi.retrieval.folder import kind_of
from gnothi.retrieval.given import as_retriever
from gnothi.retrieval.wrappers import Traced, TracedReranker
from gnothi.schemes import Scheme, as_scheme, split

if TYPE_CHECKING:
    from gnothi.retrieval.dense.fusion import Fusion

_KINDS = ("bm25", "dense", "elasticsearch", "hybrid", "lancedb", "opensearch", "postgres", "searxng", "shards")
RETRIEVERS: Registry[Scheme[Retriever]] = Registry(
    "index",
    "gnothi.retrievers",
    attribute="SCHEME",
    also={
        **{name: f"gnothi.retrieval.kinds:{name.upper()}" for name in _KINDS},
        **{name: f"gnothi.retrieval.foreign:{name.upper()}" for name in ("haystack", "langchain", "llamaindex")},
        "graph": "gnothi.graph.retriever:SCHEME",
        "lab": "gnothi.lab.named:INDEX",
    },
)
RERANKERS: Registry[Scheme[Reranker]] = Registry(
    "re-ranker",
    "gnothi.rerankers",
    also={
        "cross_encoder": "gnothi.retrieval.rerank:SCHEME",
        **{name: f"gnothi.models.remote.rankings:{name.upper()}" for name in ("cohere", "jina", "rerank", "tei")},
    },
)


def open_index(spec: str | os.PathLike[str], fusion: Fusion | None = None) -> Retriever:
    """The retriever of a spec, its searches traced (``events.Searched``). A folder says itself of which kind it is. ``fusion``
    says how ``hybrid:PATH`` makes one ranking of two.

    Raises IndexUnavailable, UnknownName for a scheme that does not exist, InvalidSetting for a fusion where nothing is fused,
    or BrokenPlugin."""
    scheme, argument = _index(os.fspath(spec))
    if fusion is None:
        return Traced(as_retriever(scheme.open(argument)))
    if scheme is not RETRIEVERS.find("hybrid"):
        raise InvalidSetting(
            f"how rankings are fused was set, and {spec} gives one ranking alone. Name <--index hybrid:PATH>, or leave out "
            "<--set index.fusion=...> and <--set index.dense_weight=...>."
        )
    return Traced(scheme.open(argument, fusion))


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

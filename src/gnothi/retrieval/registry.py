"""Indexes and re-rankers by what users call them: ``lab``, a folder, a hub id, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.protocols import Reranker, Retriever
from gnothi.registry import Registry
from gnothi.retrieval.folder import kind_of, read_manifest
from gnothi.retrieval.foreign import as_retriever
from gnothi.retrieval.wrappers import Traced, TracedReranker
from gnothi.schemes import Scheme, as_scheme, split

_KINDS = ("bm25", "dense", "elasticsearch", "hybrid", "lancedb", "opensearch", "postgres", "searxng", "shards")
RETRIEVERS: Registry[Scheme[Retriever]] = Registry(
    "index",
    "gnothi.retrievers",
    attribute="SCHEME",
    also={
        **{name: f"gnothi.retrieval.registry:{name.upper()}" for name in _KINDS},
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


def open_index(spec: str | os.PathLike[str], dense_weight: float | None = None) -> Retriever:
    """The retriever of a spec, its searches traced (``events.Searched``). A folder says itself of which kind it is.
    ``dense_weight``: share of the vectors in the one ranking that ``hybrid:PATH`` makes of two (None: a half).

    Raises IndexUnavailable, UnknownName for a scheme that does not exist, InvalidSetting for a share that is none, or where
    nothing is fused, or BrokenPlugin."""
    scheme, argument = _index(os.fspath(spec))
    if dense_weight is None:
        return Traced(as_retriever(scheme.open(argument)))
    if scheme is not RETRIEVERS.find("hybrid"):
        raise InvalidSetting(
            f"the share of vectors in the ranking was set, and {spec} gives one ranking alone. Name <--index hybrid:PATH>, or "
            "leave out <--set index.dense_weight=...>."
        )
    return Traced(scheme.open(argument, dense_weight))


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


# What an index may be: a scheme for each kind of ours and of servers. What one needs is imported when it is opened.


def _of(module: str, name: str, *more: str, needs: str = "") -> Callable[[str], Any]:
    """The function ``name`` of a module of ``gnothi.retrieval``, called with the argument and ``more``. The package that the
    module ``needs`` comes with the extra of the server's name; without it MissingDependency is raised."""

    def call(argument: str) -> Any:
        try:
            import_module(needs or __name__)
        except ImportError as error:
            extra = module.removeprefix("servers.").removesuffix("_build")
            raise MissingDependency(needs, extra, f"<--index {extra}:...>") from error
        return attrgetter(name)(import_module(f"gnothi.retrieval.{module}"))(argument, *more)

    return call


def _open_hybrid(argument: str, dense_weight: float | None = None) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.dense.fusion import HALF, Hybrid
    from gnothi.retrieval.dense.index import DenseIndex

    dense, lexical = DenseIndex.open(argument), BM25Index.open(argument)
    return Hybrid(lexical, dense, f"hybrid:{argument}", HALF if dense_weight is None else dense_weight)


def _dense_fingerprint(argument: str) -> str:
    """Of the passages and of what encodes them."""
    from gnothi.retrieval.dense.store import read_manifest as read_dense

    dense = read_dense(Path(argument))
    return f"{read_manifest(Path(argument)).content}:{dense.digest() if dense else ''}"


def _open_shards(argument: str) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.shards import shards

    return BM25Index.open(*shards(Path(argument)), name=f"shards:{argument}")


def _shards_fingerprint(argument: str) -> str:
    from gnothi.retrieval.shards import shards

    contents = [read_manifest(folder).content for folder in shards(Path(argument))]
    return hashlib.blake2b(repr(contents).encode(), digest_size=16).hexdigest() if all(contents) else ""


def _lucene(engine: str, title: str) -> Scheme[Retriever]:
    return Scheme(
        open=_of("servers.lucene", "opened", engine),
        summary=f"an index of {title}, or several: https://HOST:PORT/NAME, or {engine}:FILE.toml",
        fingerprint=_of("servers.lucene", "fingerprint", engine),
        target=_of("servers.lucene_build", "opened", engine),
    )


BM25: Scheme[Retriever] = Scheme(
    open=_of("bm25", "BM25Index.open"),
    summary="a folder of passages made by `gnothi index build`",
    fingerprint=lambda argument: read_manifest(Path(argument)).content,
)
DENSE: Scheme[Retriever] = Scheme(
    open=_of("dense.index", "DenseIndex.open"),
    summary="a folder of passages searched by vectors (`gnothi index embed`)",
    fingerprint=_dense_fingerprint,
)
HYBRID: Scheme[Retriever] = Scheme(
    open=_open_hybrid, summary="a folder of passages searched by words and by vectors", fingerprint=_dense_fingerprint
)
SHARDS: Scheme[Retriever] = Scheme(
    open=_open_shards,
    summary="a folder of folders made by `gnothi index build`, ranked as one index: shards:FOLDER",
    fingerprint=_shards_fingerprint,
)
ELASTICSEARCH, OPENSEARCH = _lucene("elasticsearch", "Elasticsearch"), _lucene("opensearch", "OpenSearch")
LANCEDB: Scheme[Retriever] = Scheme(
    open=_of("servers.lancedb", "opened"),
    summary="a table of LanceDB, or several: lancedb:FOLDER#TABLE, or lancedb:FILE.toml",
    fingerprint=_of("servers.lancedb", "fingerprint"),
    target=_of("servers.lancedb_build", "opened"),
)
POSTGRES: Scheme[Retriever] = Scheme(
    open=_of("servers.postgres", "opened", needs="psycopg"),
    summary="a table of PostgreSQL, or several: postgres://USER@HOST/DATABASE#TABLE, or postgres:FILE.toml",
    fingerprint=_of("servers.postgres", "fingerprint", needs="psycopg"),
    target=_of("servers.postgres_build", "opened", needs="psycopg"),
)
SEARXNG: Scheme[Retriever] = Scheme(
    open=_of("servers.searxng", "opened"),
    summary="the web, by a SearXNG server: searxng:http://HOST:PORT, or searxng:FILE.toml",
)

"""What ``--index SCHEME:ARGUMENT`` opens: a scheme for each kind of index of ours and of servers. What it needs is imported
when it is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.protocols import Retriever
from gnothi.retrieval.folder import read_manifest
from gnothi.schemes import Scheme

if TYPE_CHECKING:
    from gnothi.retrieval.dense.fusion import Fusion
    from gnothi.retrieval.targets import Target


def _of(module: str, name: str, *more: str) -> Callable[[str], Any]:
    """The function ``name`` of a module of ``gnothi.retrieval``, called with the argument and ``more``."""
    return lambda argument: attrgetter(name)(import_module(f"gnothi.retrieval.{module}"))(argument, *more)


def _open_hybrid(argument: str, fusion: Fusion | None = None) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.dense import fusion as fusing
    from gnothi.retrieval.dense.index import DenseIndex

    dense, lexical = DenseIndex.open(argument), BM25Index.open(argument)
    return fusing.Hybrid(lexical, dense, fusion or fusing.Fusion(), f"hybrid:{argument}")


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


def _open_postgres(argument: str) -> Retriever:
    from gnothi.retrieval.servers.postgres.table import tables

    tables(argument)  # says what package is lacking
    from gnothi.retrieval.servers.postgres.search import opened

    return opened(argument)


def _postgres_target(argument: str) -> AbstractContextManager[Target]:
    from gnothi.retrieval.servers.postgres.table import tables

    found = tables(argument)
    from gnothi.retrieval.servers.postgres.writer import opened

    return opened(argument, found)


def _lucene(engine: str, title: str) -> Scheme[Retriever]:
    return Scheme(
        open=_of("servers.lucene.search", "opened", engine),
        summary=f"an index of {title}, or several: https://HOST:PORT/NAME, or {engine}:FILE.toml",
        fingerprint=_of("servers.lucene.search", "fingerprint", engine),
        target=_of("servers.lucene.writer", "opened", engine),
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
    open=_of("servers.lancedb.search", "opened"),
    summary="a table of LanceDB, or several: lancedb:FOLDER#TABLE, or lancedb:FILE.toml",
    fingerprint=_of("servers.lancedb.search", "fingerprint"),
    target=_of("servers.lancedb.writer", "opened"),
)
POSTGRES: Scheme[Retriever] = Scheme(
    open=_open_postgres,
    summary="a table of PostgreSQL, or several: postgres://USER@HOST/DATABASE#TABLE, or postgres:FILE.toml",
    fingerprint=_of("servers.postgres.search", "fingerprint"),
    target=_postgres_target,
)
SEARXNG: Scheme[Retriever] = Scheme(
    open=_of("servers.searxng", "opened"),
    summary="the web, by a SearXNG server: searxng:http://HOST:PORT, or searxng:FILE.toml",
)

"""Searching an index by its vectors: exactly while they are few, by their graph of neighbours when they are many."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import Batcher, in_batches
from gnothi.errors import IndexUnavailable, MissingDependency
from gnothi.protocols import Count
from gnothi.retrieval import folder as folders
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.dense import store
from gnothi.retrieval.dense.encoders import EncodeQuestions, Vectors
from gnothi.retrieval.dense.store import Manifest, Store, damaged
from gnothi.retrieval.filtering import Narrows
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.folder import disk_errors
from gnothi.retrieval.results import check_k, ranked
from gnothi.retrieval.terms import terms
from gnothi.types import ScoredPassage, encodable

# The graph of neighbours (HNSW, by usearch) through which the nearest of very many vectors are found without looking at all.
# It is saved now and then while it is built; a kill costs what came since. It holds vectors in 16 bits a number and only names
# candidates: scores are those of the vectors themselves.

EXACT = 20_000
"""So many vectors are compared one by one: a few milliseconds, and nothing to build."""
_LINKS, _WIDTH_BUILDING, _WIDTH_SEARCHING = 16, 128, 256
_STEP = 5_000
_SECONDS_BETWEEN_SAVES = 60.0


class Neighbours:
    """Of the first vectors of a store; those added later are looked at one by one."""

    def __init__(self, graph: Any, folder: Path) -> None:
        self._graph, self._folder = graph, folder

    @classmethod
    def open(cls, folder: Path, manifest: Manifest) -> Neighbours | None:
        """Memory-mapped; None where there is none. Raises IndexUnavailable, MissingDependency."""
        file = _file(folder, manifest)
        if not file.exists():
            return None
        graph = _empty(manifest.dimension)
        _read(graph.view, file)
        return cls(graph, folder)

    def near(self, vector: Vectors, limit: int, rows: int) -> NDArray[np.int64]:
        """Rows that may be among the ``limit`` nearest of the first ``rows``, in no order."""
        try:
            nearest = self._graph.search(vector, min(limit, len(self._graph)), threads=1).keys.astype(np.int64)
        except (RuntimeError, ValueError) as error:
            raise damaged(self._folder, str(error)) from None
        return np.concatenate([nearest[(nearest >= 0) & (nearest < rows)], np.arange(len(self._graph), rows)])

    @staticmethod
    def build(store: Store, on_progress: Callable[[int, int, int], None]) -> None:
        """Bring the store's graph up to its vectors, where they are many; ``on_progress`` gets how many it holds, of how
        many, and how many came now."""
        vectors, file = store.vectors(), _file(store.folder, store.manifest)
        if len(vectors) <= EXACT:
            return
        graph = _empty(store.manifest.dimension)
        if file.exists():
            _read(graph.load, file)
        before, saved = len(graph), time.monotonic()
        if len(vectors) - before <= EXACT // 10:
            return
        with disk_errors(store.folder):
            for start in range(before, len(vectors), _STEP):
                keys = np.arange(start, min(start + _STEP, len(vectors)))
                graph.add(keys, np.asarray(vectors[start : start + _STEP]))
                on_progress(len(graph), len(vectors), len(graph) - before)
                if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
                    _save(graph, file)
                    saved = time.monotonic()
            _save(graph, file)


def _file(folder: Path, manifest: Manifest) -> Path:
    return folder / f"neighbours-{manifest.generation}.usearch"


def _empty(dimension: int) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise MissingDependency("usearch", "dense", f"an index of more than {EXACT:,} vectors") from error
    return Index(
        ndim=dimension,
        metric="ip",
        dtype="bf16",
        connectivity=_LINKS,
        expansion_add=_WIDTH_BUILDING,
        expansion_search=_WIDTH_SEARCHING,
        enable_key_lookups=False,  # a table of all keys would be made at every opening
    )


def _read(reading: Callable[[str], None], file: Path) -> None:
    try:
        reading(str(file))
    except (RuntimeError, ValueError, OSError) as error:
        raise damaged(file.parent, str(error)) from None


def _save(graph: Any, file: Path) -> None:
    """The whole of it, or the file as it was."""
    new = file.with_name(file.name + ".new")
    graph.save(str(new))
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(file)


_DECIMALS = 5  # vectors of equal passages can differ in the last bits, by the batch they were in; rounding makes them tie
_SPARE = 32
_PART = 65_536
_KEPT = 8
"""Filters whose rows are kept."""

Rows = NDArray[np.int64]


class DenseIndex(Narrows):
    """A Retriever over the vectors of an index folder, as they were when it was opened; a passage deleted since is not found.
    Queries that wait at the same time are encoded together."""

    def __init__(
        self, path: str | os.PathLike[str], lexical: BM25Index, manifest: store.Manifest, encode: EncodeQuestions
    ) -> None:
        folder = self._folder = Path(path) / store.FOLDER
        self._name = f"dense:{path}"
        self._lexical = lexical
        self._rows = store.Rows(folder, manifest.generation)
        try:
            self._vectors = store.mapped(folder, manifest, len(self._rows))
            self._neighbours = Neighbours.open(folder, manifest)
        except BaseException:
            self._rows.close()
            raise
        self._asking = threading.Lock()
        self._passing: dict[Filters, Rows] = {}
        self._batcher: Batcher[str, Vectors] = Batcher(in_batches(lambda queries: list(encode(queries))), "encoder")

    @classmethod
    def open(cls, path: str | os.PathLike[str], encode: EncodeQuestions | None = None) -> DenseIndex:
        """``encode`` takes the place of the encoder that the index names. Raises IndexUnavailable for an index whose passages
        do not all have vectors, or have some of other weights; ModelUnavailable, MissingDependency."""
        manifest = checked(Path(path))
        return cls(path, BM25Index.open(path), manifest, encode or manifest.encoding.questions())

    @property
    def name(self) -> str:
        return self._name

    def __len__(self) -> int:
        """Number of passages when it was opened."""
        return self._rows.named

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        return await self.search_among(query, k, ())

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        """Vectors of passages that pass the filters are looked at one by one; which these are is kept for the next search."""
        check_k(k)
        if not query.strip() or k == 0:
            return ()
        vector = await self._batcher.submit(encodable(query))
        if len(self._vectors) and vector.shape != self._vectors.shape[1:]:
            raise store.damaged(self._folder, f"they have {self._vectors.shape[1]} numbers, their encoder's {len(vector)}")
        return await asyncio.to_thread(self._search, vector, k, filters)

    async def keys(self) -> list[str]:
        return await self._lexical.keys()

    def counter(self, filters: Filters = ()) -> Count:
        return self._lexical.counter(filters)

    def _search(self, vector: Vectors, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        passages = self.nearest(vector, k, self._among(filters) if filters else None)
        # A build since this was opened may have changed what is known of a passage.
        return tuple(one for one in passages if all(each.passes(terms(one.passage.metadata)) for each in filters))

    def _among(self, filters: Filters) -> Rows:
        """The rows of passages that pass."""
        with self._asking:
            if filters not in self._passing:
                if len(self._passing) >= _KEPT:
                    self._passing.pop(next(iter(self._passing)))
                self._passing[filters] = self._rows.of(self._lexical.ids(filters))
            return self._passing[filters]

    def nearest(self, vector: Vectors, k: int, among: Rows | None = None) -> tuple[ScoredPassage, ...]:
        """The k passages (of those rows) whose vectors have the largest inner product with this one."""
        size = len(self._vectors if among is None else among)
        if not size:
            return ()
        limit = k + _SPARE
        while True:
            limit = min(limit, size)
            rows, scores = self._best(vector, limit, among)
            with self._asking:
                ids = self._rows.ids(rows.tolist())
            named = [(score, ids[row]) for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row in ids]
            # Ties are broken by id: every passage tied with the k-th is needed.
            if limit == size or (len(named) > k and named[-1][0] < named[k - 1][0]):
                break
            limit *= 4
        tied = named[min(k, len(named)) - 1][0] if named else 0.0
        candidates = ((score, self._lexical.get(key)) for score, key in named if score >= tied)
        return ranked((ScoredPassage(passage, score) for score, passage in candidates if passage is not None), k)

    async def aclose(self) -> None:
        """What is memory-mapped is released with the object."""
        await self._batcher.aclose()
        with self._asking:
            self._rows.close()

    def _best(self, vector: Vectors, limit: int, among: Rows | None) -> tuple[np.ndarray, np.ndarray]:
        """Rows and rounded scores of the ``limit`` best, best first."""
        if among is not None:
            rows, parts = among, range(0, len(among), _PART)
            scores = np.concatenate([self._vectors[among[part : part + _PART]] @ vector for part in parts])
        elif self._neighbours is None:
            rows = np.arange(len(self._vectors))
            scores = self._vectors @ vector
        else:
            rows = self._neighbours.near(vector, limit, len(self._vectors))
            scores = self._vectors[rows] @ vector
        scores = np.round(scores.astype(np.float64), _DECIMALS)
        order = np.argsort(-scores, kind="stable")[:limit]
        return rows[order], scores[order]


def checked(path: Path) -> store.Manifest:
    """What is noted of the index's vectors. Raises IndexUnavailable where they are not there, of an earlier state of the
    index, or of other weights than the encoder has now."""
    content, manifest = content_of(path), store.read_manifest(path)
    again = f"`gnothi index embed {path}`"
    if manifest is None:
        raise IndexUnavailable(f"the index {path} has no vectors to search by. Make them with {again[:-1]} --encoder MODEL`.")
    if not manifest.content:
        raise IndexUnavailable(
            f"not all passages of the index {path} have their vectors: making them was interrupted. Run {again}."
        )
    if manifest.content != content:
        raise IndexUnavailable(
            f"the index {path} has changed since its vectors were made. Run {again}, which makes the missing ones."
        )
    check_weights(path, manifest)
    return manifest


def content_of(path: Path) -> str:
    """What changes with the passages of the index; never empty."""
    return folders.read_manifest(path).content or "unknown"


def check_weights(path: Path, manifest: store.Manifest) -> None:
    now = manifest.encoding.fingerprint()
    if now and manifest.fingerprint and now != manifest.fingerprint:
        raise IndexUnavailable(
            f"the vectors of the index {path} were made by other weights than {manifest.encoder!r} has now (fingerprints "
            f"{manifest.fingerprint[:12]} and {now[:12]}): they cannot be compared. Put the earlier weights back, or remove "
            f"{path / store.FOLDER} and run `gnothi index embed {path} --encoder MODEL`."
        )

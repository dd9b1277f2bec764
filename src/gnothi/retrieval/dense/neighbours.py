"""The graph of neighbours (HNSW, by usearch) through which the nearest of very many vectors are found without looking at all.

It is saved now and then while it is built; a kill costs what came since. It holds vectors in 16 bits a number and only names
candidates: scores are those of the vectors themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import MissingDependency
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.dense.store import Manifest, Store, damaged
from gnothi.retrieval.folder import disk_errors

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
            found = self._graph.search(vector, min(limit, len(self._graph)), threads=1).keys.astype(np.int64)
        except (RuntimeError, ValueError) as error:
            raise damaged(self._folder, str(error)) from None
        return np.concatenate([found[(found >= 0) & (found < rows)], np.arange(len(self._graph), rows)])

    @staticmethod
    def build(store: Store, on_progress: Callable[[int, int, int], None]) -> None:
        """Bring the store's graph up to its vectors, where they are many; ``on_progress`` is told how many it holds, of how
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

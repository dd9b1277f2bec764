"""A graph as flat arrays: in memory, or mapped from files that open at once and are read where they are needed.

Nodes are numbered in the order of their names' UTF-8 bytes, so that a name is found by halving. Facts are numbered by
importance (weight, then order of import), so that the first facts of a node are those that matter most.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tables:
    """n nodes, m facts, f places where a fact touches a node (2 m, less the facts from a node to itself)."""

    names: NDArray[np.uint8]
    """The names' bytes, one after the other."""
    name_starts: NDArray[np.int64]
    """(n + 1,): where each name starts in ``names``."""
    heads: NDArray[np.int32]
    relations: NDArray[np.int32]
    tails: NDArray[np.int32]
    """(m,) each."""
    fact_starts: NDArray[np.int64]
    """(n + 1,): where each node's facts start in ``facts``."""
    facts: NDArray[np.int32]
    """(f,): numbers of the facts at each node, rising."""
    surface_hashes: NDArray[np.uint64]
    surface_nodes: NDArray[np.int32]
    """Forms of names, by rising hash; of one form the node with the most facts first."""
    lemma_hashes: NDArray[np.uint64]
    lemma_nodes: NDArray[np.int32]
    """Lemmas of names, by rising hash; one node each."""

    @property
    def nodes(self) -> int:
        return len(self.name_starts) - 1

    def __len__(self) -> int:
        """Number of facts."""
        return len(self.heads)

    @cached_property
    def _bytes(self) -> memoryview:
        return self.names.data

    def _encoded(self, node: int) -> memoryview:
        return self._bytes[self.name_starts[node] : self.name_starts[node + 1]]

    def name(self, node: int) -> str:
        return str(self._encoded(node), "utf-8")

    def node(self, name: str) -> int | None:
        """The number of the node with this name."""
        wanted = name.encode("utf-8", "replace")
        place = bisect_left(range(self.nodes), wanted, key=lambda node: bytes(self._encoded(node)))
        return place if place < self.nodes and self.name(place) == name else None

    def save(self, folder: Path) -> None:
        """One file an array; they are on the disk when this returns."""
        for item in fields(self):
            with (folder / f"{item.name}.npy").open("wb") as file:
                np.save(file, getattr(self, item.name), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())

    @property
    def digest(self) -> str:
        """Of all that is in them."""
        digest = hashlib.blake2b(digest_size=16)
        for item in fields(self):
            digest.update(np.ascontiguousarray(getattr(self, item.name)).data)
        return digest.hexdigest()

    @classmethod
    def open(cls, folder: Path) -> Tables:
        """Maps the files of ``save``. Raises OSError or ValueError where one is missing or damaged."""
        found = cls(*(_mapped(folder / f"{item.name}.npy") for item in fields(cls)))
        found._check()
        return found

    def _check(self) -> None:
        """What shows without reading all: kinds and sizes that belong together. Raises ValueError."""
        for item in fields(self):
            array, kind = getattr(self, item.name), _KINDS.get(item.name, np.int32)
            if array.ndim != 1 or array.dtype != kind:
                raise ValueError(f"{item.name} holds {array.dtype} in {array.ndim} dimensions")
        sizes = (
            len(self.heads) == len(self.relations) == len(self.tails),
            len(self.name_starts) == len(self.fact_starts) > 0,
            self.name_starts[-1:] == len(self.names) and self.fact_starts[-1:] == len(self.facts),
            len(self.surface_hashes) == len(self.surface_nodes) and len(self.lemma_hashes) == len(self.lemma_nodes),
        )
        if not all(sizes):
            raise ValueError("its tables do not belong together")


_KINDS = {
    "names": np.uint8, "name_starts": np.int64, "fact_starts": np.int64, "surface_hashes": np.uint64, "lemma_hashes": np.uint64,
}  # fmt: skip


def _mapped(file: Path) -> NDArray[Any]:
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise ValueError(f"{file.name} is no file")
    try:
        # A plain view: numpy's memmap class costs a microsecond at each access.
        return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)).view(np.ndarray)
    except (TokenError, SyntaxError, TypeError, OverflowError, RecursionError) as error:  # of a header that is no header
        raise ValueError(f"{file.name}: {error}") from None

"""A graph as flat arrays: in memory, or mapped from files that open at once and are read where they are needed.

Nodes are numbered in the order of their names' UTF-8 bytes, so that a name is found by halving. Facts are numbered by
importance (weight, then order of import), so that the first facts of a node are those that matter most.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnothi.graph.lemmas import Lemmatiser, forms, hashes


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
        encoded = name.encode("utf-8", "replace")
        place = bisect_left(range(self.nodes), encoded, key=lambda node: bytes(self._encoded(node)))
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
        tables = cls(*(_mapped(folder / f"{item.name}.npy") for item in fields(cls)))
        tables._check()
        return tables

    def _check(self) -> None:
        """What shows without reading all: kinds and sizes that belong together. Raises ValueError."""
        for item in fields(self):
            array, kind = getattr(self, item.name), _KINDS.get(item.name, np.int32)
            if array.ndim != 1 or array.dtype != kind:
                raise ValueError(f"{item.name} holds {array.dtype} of shape {array.shape}")
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


# From names and triples in order of import to tables. The same triples in the same order give the same bytes.

_AT_ONCE = 50_000  # names whose forms are made between two reports of progress


def arrange(
    names: Sequence[str],
    triples: NDArray[np.int32],
    weights: NDArray[np.float32],
    lemma: Lemmatiser,
    progress: Callable[[float], None] = lambda _: None,
) -> Tables:
    """``triples`` has shape (rows, 3): head and tail as places in ``names``, between them the relation's number.

    Equal triples become one, with the largest of their weights and the place of the first. Names without a fact are left out.
    ``progress`` gets the share of the work that is done.
    """
    named = np.zeros(len(names), dtype=bool)
    named[triples[:, 0]] = named[triples[:, 2]] = True
    order = np.array(sorted(np.flatnonzero(named).tolist(), key=lambda node: names[node].encode()), dtype=np.int64)
    number = np.full(len(names), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    progress(0.05)
    heads, relations, tails = _merged(number[triples[:, 0]], triples[:, 1], number[triples[:, 2]], weights)
    progress(0.15)
    starts, facts = _touching(heads, tails, len(order))
    progress(0.2)
    used = [names[node] for node in order.tolist()]
    surface, lemmas = _forms(used, np.diff(starts), lemma, lambda share: progress(0.2 + 0.75 * share))
    encoded = [name.encode() for name in used]
    name_starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=name_starts[1:])
    tables = Tables(
        np.frombuffer(b"".join(encoded), dtype=np.uint8), name_starts, heads, relations, tails, starts, facts, *surface, *lemmas
    )
    progress(1.0)
    return tables


def _merged(
    heads: NDArray[np.int32], relations: NDArray[np.int32], tails: NDArray[np.int32], weights: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Each triple once, the heaviest first, equally heavy ones in order of import."""
    if not len(heads):
        return heads, relations.astype(np.int32), tails
    order = np.lexsort((tails, relations, heads))  # stable: of equal triples the first import comes first
    change = np.zeros(len(order), dtype=bool)
    change[0] = True
    for column in (heads, relations, tails):
        ordered = column[order]
        change[1:] |= ordered[1:] != ordered[:-1]
    groups = np.flatnonzero(change)
    heaviest = np.maximum.reduceat(weights[order], groups)
    first = order[groups]
    order_of_facts = first[np.lexsort((first, -heaviest))]
    return heads[order_of_facts], relations[order_of_facts], tails[order_of_facts]


def _touching(heads: NDArray[np.int32], tails: NDArray[np.int32], nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """For each node where its facts start, and their numbers."""
    numbers = np.arange(len(heads), dtype=np.int32)
    other = tails != heads  # a fact from a node to itself touches it once
    at = np.concatenate([heads, tails[other]])
    fact = np.concatenate([numbers, numbers[other]])
    starts = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(at, minlength=nodes), out=starts[1:])
    return starts, fact[np.lexsort((fact, at))]


_Forms = tuple[NDArray[np.uint64], NDArray[np.int32]]


def _forms(
    names: Sequence[str], degrees: NDArray[np.int64], lemma: Lemmatiser, progress: Callable[[float], None]
) -> tuple[_Forms, _Forms]:
    nodes: list[int] = []
    surface: list[NDArray[np.uint64]] = []
    lemmas: list[NDArray[np.uint64]] = []
    edges = [*range(0, len(names), _AT_ONCE), len(names)]
    for low, high in pairwise(edges):
        linked = [(node, form) for node, form in enumerate(map(forms, names[low:high]), low) if form]
        nodes += [node for node, _ in linked]
        surface.append(hashes([" ".join(form) for _, form in linked]))
        lemmas.append(hashes([" ".join(map(lemma, form)) for _, form in linked]))
        progress(high / len(names))
    if not nodes:
        empty = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)
        return empty, empty
    node = np.array(nodes, dtype=np.int32)
    form, root = np.concatenate(surface), np.concatenate(lemmas)
    order = np.lexsort((node, -degrees[node], form))
    # Of the names with one lemma that which is its own lemma, else the one with the most facts.
    best = np.lexsort((node, -degrees[node], form != root, root))
    first = np.ones(len(best), dtype=bool)
    first[1:] = root[best][1:] != root[best][:-1]
    best = best[first]
    return (form[order], node[order]), (root[best], node[best])

"""From names and triples in order of import to tables. The same triples in the same order give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gnothi.graph.lemmas import Lemmatiser, forms, hashes
from gnothi.graph.tables import Tables

_AT_ONCE = 50_000  # names whose forms are made between two reports of progress


def arrange(
    names: Sequence[str],
    triples: NDArray[np.int32],
    weights: NDArray[np.float32],
    lemma: Lemmatiser,
    tell: Callable[[float], None] = lambda _: None,
) -> Tables:
    """``triples`` has shape (rows, 3): head and tail as places in ``names``, between them the relation's number.

    Equal triples become one, with the largest of their weights and the place of the first. Names without a fact are left out.
    ``tell`` is told the share of the work that is done.
    """
    named = np.zeros(len(names), dtype=bool)
    named[triples[:, 0]] = named[triples[:, 2]] = True
    order = np.array(sorted(np.flatnonzero(named).tolist(), key=lambda node: names[node].encode()), dtype=np.int64)
    number = np.full(len(names), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    tell(0.05)
    heads, relations, tails = _merged(number[triples[:, 0]], triples[:, 1], number[triples[:, 2]], weights)
    tell(0.15)
    starts, facts = _touching(heads, tails, len(order))
    tell(0.2)
    kept = [names[node] for node in order.tolist()]
    surface, lemmas = _forms(kept, np.diff(starts), lemma, lambda share: tell(0.2 + 0.75 * share))
    encoded = [name.encode() for name in kept]
    name_starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=name_starts[1:])
    tables = Tables(
        np.frombuffer(b"".join(encoded), dtype=np.uint8), name_starts, heads, relations, tails, starts, facts, *surface, *lemmas
    )
    tell(1.0)
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
    kept = first[np.lexsort((first, -heaviest))]
    return heads[kept], relations[kept], tails[kept]


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
    names: Sequence[str], degrees: NDArray[np.int64], lemma: Lemmatiser, tell: Callable[[float], None]
) -> tuple[_Forms, _Forms]:
    nodes: list[int] = []
    surface: list[NDArray[np.uint64]] = []
    lemmas: list[NDArray[np.uint64]] = []
    edges = [*range(0, len(names), _AT_ONCE), len(names)]
    for low, high in pairwise(edges):
        found = [(node, said) for node, said in enumerate(map(forms, names[low:high]), low) if said]
        nodes += [node for node, _ in found]
        surface.append(hashes([" ".join(said) for _, said in found]))
        lemmas.append(hashes([" ".join(map(lemma, said)) for _, said in found]))
        tell(high / len(names))
    if not nodes:
        empty = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)
        return empty, empty
    node = np.array(nodes, dtype=np.int32)
    said, root = np.concatenate(surface), np.concatenate(lemmas)
    order = np.lexsort((node, -degrees[node], said))
    # Of the names with one lemma that which is its own lemma, else the one with the most facts.
    best = np.lexsort((node, -degrees[node], said != root, root))
    first = np.ones(len(best), dtype=bool)
    first[1:] = root[best][1:] != root[best][:-1]
    best = best[first]
    return (said[order], node[order]), (root[best], node[best])

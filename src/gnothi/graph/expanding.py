"""The facts around some nodes, step by step, with a cap for each node."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidSetting
from gnothi.graph.tables import Tables


def check(hops: int, cap: int) -> None:
    """Raises InvalidSetting for numbers that mean nothing."""
    if hops < 0:
        raise InvalidSetting(f"steps around a node: got {hops}, expected 0 or more.")
    if cap < 1:
        raise InvalidSetting(f"facts taken of each node: got {cap}, expected 1 or more.")


def expand(tables: Tables, nodes: Iterable[int], hops: int, cap: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(numbers of the facts, nearer ones first; nodes that have more facts than ``cap``), in order of finding.

    Of each node its first ``cap`` facts are taken. The next step starts from the nodes these lead to.
    """
    frontier = _distinct(np.fromiter(nodes, dtype=np.int64))
    reached = frontier
    taken = np.zeros(0, dtype=np.int64)
    capped = [np.zeros(0, dtype=np.int64)]
    for _ in range(hops):
        if not len(frontier):
            break
        starts = tables.fact_starts[frontier]
        counts = tables.fact_starts[frontier + 1] - starts
        capped.append(frontier[counts > cap])
        counts = np.minimum(counts, cap)
        # Places starts[0], starts[0] + 1, ... of the first node, then those of the second, and so on.
        ends = np.cumsum(counts)
        places = np.arange(ends[-1], dtype=np.int64) + np.repeat(starts - ends + counts, counts)
        fresh = _new(tables.facts[places].astype(np.int64), taken)
        taken = np.concatenate([taken, fresh])
        # Head and tail of each fact in turn: the nodes in the order in which the facts name them.
        ends_of = np.stack([tables.heads[fresh], tables.tails[fresh]], axis=1).reshape(-1).astype(np.int64)
        frontier = _new(ends_of, reached)
        reached = np.concatenate([reached, frontier])
    return taken, np.concatenate(capped)


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, where it first stands."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]


def _new(numbers: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = _distinct(numbers)
    return numbers[~np.isin(numbers, known)]

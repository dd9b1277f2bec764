"""Which continuations a step computes: samples of one prompt that have said the same so far, and say the same next, are one.

A model that knows an answer says it twenty times in the same words; that costs one row, until the samples part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def regroup(branch: Numbers, feed: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """New branches for samples that stand on ``branch`` (0 to ``count`` - 1) and feed ``feed``.

    The branch each new one continues (one may go on as several, or not at all), and each sample's new branch. Branches that
    go on stay where they are as far as possible: the first continuation takes its parent's place, others fill holes, then come
    at the end; holes that are left are filled from the end.
    """
    span = int(feed.max(initial=0)) + 1
    keys, of_sample = np.unique(branch * span + feed, return_inverse=True)
    parents = keys // span
    first = np.ones(len(parents), np.bool_)
    first[1:] = parents[1:] != parents[:-1]
    place = np.where(first, parents, -1)
    empty = np.ones(count, np.bool_)
    empty[parents] = False
    holes = np.flatnonzero(empty)
    more = np.flatnonzero(~first)
    filled = min(len(holes), len(more))
    place[more[:filled]] = holes[:filled]
    place[more[filled:]] = count + np.arange(len(more) - filled)
    beyond = np.flatnonzero(place >= len(parents))
    place[beyond] = holes[filled : filled + len(beyond)]
    order = np.empty(len(parents), np.int64)
    order[place] = parents
    return order, place[of_sample]

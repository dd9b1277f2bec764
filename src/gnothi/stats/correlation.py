"""Rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import mid_ranks


def spearman(columns: ArrayLike) -> list[list[float | None]]:
    """Rank correlations between ``columns``, shape (k, n): k rows of k numbers. Infinite values rank highest; None beside a
    column that is the same everywhere."""
    ranks = np.array([mid_ranks(column) for column in np.asarray(columns, dtype=np.float64)])
    if not ranks.size:
        return []
    ranks -= ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (ranks @ ranks.T) / np.outer(length, length)
    return [[float(value) if np.isfinite(value) else None for value in row] for row in found]

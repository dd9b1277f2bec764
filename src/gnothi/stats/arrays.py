"""Arrays as statistics take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def columns(*values: ArrayLike, least: int = 0) -> list[Floats]:
    """``values`` as arrays of one shape (n,). Raises ValueError for other shapes, or fewer than ``least`` entries."""
    arrays = [np.asarray(column, dtype=np.float64) for column in values]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1 or len(arrays[0]) < least:
        shapes = " and ".join(str(array.shape) for array in arrays)
        enough = f" with at least {least}" if least else ""
        raise ValueError(f"got shapes {shapes}, expected equal one-dimensional ones{enough}")
    return arrays


def ranked(scores: ArrayLike, positive: ArrayLike) -> tuple[Floats, Mask]:
    """Scores and labels as arrays of shape (n,). Raises ValueError for other shapes, or a score that is not a number."""
    x, y = columns(scores, positive)
    if np.isnan(x).any():
        raise ValueError("got a score that is not a number")
    return x, y.astype(bool)


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1 on of values (n,); equal ones share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)

"""Whether two samples come from one distribution: the two-sample test of Kolmogorov and Smirnov (Smirnov 1939)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Drift:
    """``distance``: the largest gap between the shares of both samples that lie below one value, from 0 to 1; ``p``: how
    probable one as large is if both come from one distribution."""

    distance: float
    p: float


def drift(before: ArrayLike, now: ArrayLike) -> Drift:
    """Two samples, shapes (n,) and (m,), neither empty; infinite values lie beyond all others. With values that occur more
    than once ``p`` is too large rather than too small, so that no alarm comes of them. Raises ValueError for what is no
    number."""
    one, other = (np.asarray(values, dtype=np.float64) for values in (before, now))
    if one.ndim != 1 or other.ndim != 1 or not len(one) or not len(other) or np.isnan(one).any() or np.isnan(other).any():
        raise ValueError(f"got shapes {one.shape} and {other.shape}, expected two columns of numbers")
    from scipy import special

    both = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (one, other)]
    distance = float(np.abs(below[0] - below[1]).max())
    return Drift(distance, float(special.kolmogorov(np.sqrt(len(one) * len(other) / len(both)) * distance)))

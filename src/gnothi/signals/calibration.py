"""Choosing a threshold from scores with known outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput


def balanced_threshold(scores: ArrayLike, wrong: ArrayLike) -> float:
    """The threshold t for which "wrong if score > t" has the best mean of the two classes' hit rates (Youden 1950).

    Where several cuts are equally good, the middle of the widest gap between neighbouring scores: far from what was seen
    on either side. ``scores`` and ``wrong`` have shape (n,); infinite scores (nothing could be measured) count as above any
    threshold. Raises InvalidInput unless both classes occur.
    """
    values = np.asarray(scores, dtype=np.float64)
    labels = np.asarray(wrong, dtype=bool)
    if values.shape != labels.shape or values.ndim != 1:
        raise InvalidInput(
            f"cannot choose a threshold: got shapes {values.shape} and {labels.shape}, expected one score per outcome."
        )
    if not labels.any() or labels.all() or np.isnan(values).any():
        raise InvalidInput(
            f"cannot choose a threshold: got {int(labels.sum())} wrong of {len(labels)}, {int(np.isnan(values).sum())} scores "
            "missing, expected right and wrong outcomes, each with a score."
        )
    distinct = np.unique(values[np.isfinite(values)])
    if len(distinct) < 2:
        return float(distinct[0]) if len(distinct) else 0.0
    cuts = (distinct[1:] + distinct[:-1]) / 2
    caught = np.array([(values[labels] > cut).mean() for cut in cuts])
    spared = np.array([(values[~labels] <= cut).mean() for cut in cuts])
    balance = caught + spared
    best = np.flatnonzero(balance >= balance.max() - 1e-12)
    return float(cuts[best[np.argmax(np.diff(distinct)[best])]])

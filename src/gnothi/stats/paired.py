"""Do two methods differ over the same questions? A paired test, and what many tests together allow to say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gnothi.stats.arrays import Floats, columns
from gnothi.stats.intervals import Interval, mean_interval

PERMUTATIONS = 10_000
_BATCH = 1 << 22  # random numbers held at once


class PairedTest(NamedTuple):
    """``difference`` of the means (first minus second), its bootstrap interval, the two-sided p-value, and ``test``: what it
    rests on, as people call it."""

    n: int
    difference: float
    interval: Interval | None
    p: float
    test: str


def paired_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Do two methods differ in mean over the same questions? Two-sided sign-flip permutation test (Fisher 1935; Noreen 1989).

    Where all differences that are not zero have the same size (exact match, accuracy) the test has a closed form, McNemar's
    exact test; else 10,000 random sign patterns, p = (1 + as extreme) / (1 + tried).
    """
    a, b = columns(first, second, least=1)
    differences = a - b
    moved = differences[differences != 0]
    mean, interval = float(differences.mean()), mean_interval(differences, share=False)
    if not len(moved):
        return PairedTest(len(a), 0.0, None, 1.0, "exact McNemar test")
    if np.ptp(np.abs(moved)) == 0:
        from scipy import stats

        p = float(stats.binomtest(int((moved > 0).sum()), len(moved)).pvalue)
        return PairedTest(len(a), mean, interval, p, "exact McNemar test")
    return PairedTest(len(a), mean, interval, _sign_flip(moved), "paired permutation test")


def _sign_flip(differences: Floats) -> float:
    random = np.random.default_rng(0)
    total, n = differences.sum(), len(differences)
    # Sums of the same numbers in another order differ in the last bits; they must count as equally extreme.
    observed = abs(total) - 1e-12 * np.abs(differences).sum()
    per_chunk = max(1, _BATCH // n)
    extreme = 0
    for start in range(0, PERMUTATIONS, per_chunk):
        size = min(per_chunk, PERMUTATIONS - start)
        signs = np.unpackbits(np.frombuffer(random.bytes((size * n + 7) // 8), dtype=np.uint8), count=size * n).reshape(size, n)
        extreme += int((np.abs(2 * (signs.astype(np.float64) @ differences) - total) >= observed).sum())
    return (1 + extreme) / (1 + PERMUTATIONS)


def holm(p: ArrayLike) -> Floats:
    """p-values corrected for their number by Holm's step-down procedure (Holm 1979), in the order given.

    Rejecting where a corrected value is at most alpha keeps the chance of any false rejection at or below alpha, however the
    tests depend on each other. Raises ValueError for values outside [0, 1]."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"got {values!r}, expected p-values in [0, 1]")
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected

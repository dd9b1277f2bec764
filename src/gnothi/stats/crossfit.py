"""Judged only on what was not fitted on: folds, and scores as probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnothi.stats.arrays import Floats, Mask, ranked
from gnothi.stats.probabilities import fit_isotonic

Fit = Callable[[Floats, Mask], Callable[[Floats], Floats]]
"""From scores and what happened, shape (n,), to a curve from scores to probabilities."""

FOLDS = 5


def folds_of(labels: Mask, folds: int = FOLDS, seed: int = 0) -> NDArray[np.int_]:
    """The fold of each example; every fold has its share of both classes."""
    random = np.random.default_rng(seed)
    found = np.empty(len(labels), dtype=np.int_)
    for one in (False, True):
        places = np.flatnonzero(labels == one)
        found[places] = random.permutation(len(places)) % folds
    return found


def crossfit(fit: Fit, scores: Floats, happened: Mask) -> Floats:
    """Each score as a probability, by a curve that ``fit`` finds for the scores and outcomes of the other folds."""
    fold = folds_of(happened)
    predicted = np.empty(len(scores))
    for held_out in range(FOLDS):
        test = fold == held_out
        predicted[test] = fit(scores[~test], happened[~test])(scores[test])
    return predicted


def crossfit_probabilities(scores: ArrayLike, happened: ArrayLike) -> Floats | None:
    """Each score as a probability that it happens, by isotonic regression fitted on the other folds (Zadrozny & Elkan 2002).

    A score of any scale becomes comparable to a share without being judged on what it was fitted on. Infinite scores are fine.
    None for fewer than ten scores, or fewer than two of either class: then there is nothing to learn for one of the folds.
    """
    x, y = ranked(scores, happened)
    if len(x) < 2 * FOLDS or min(y.sum(), (~y).sum()) < 2:
        return None
    order = np.unique(x, return_inverse=True)[1]  # all that the regression looks at, and finite
    return crossfit(fit_isotonic, order.astype(np.float64), y)

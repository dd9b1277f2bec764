"""From scores with known outcomes to a threshold, or to probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask, ranked


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


@dataclass(frozen=True, slots=True)
class Platt:
    """P(right) = 1 / (1 + exp(-(slope x score + intercept))) (Platt 1999)."""

    slope: float
    intercept: float

    def __call__(self, scores: ArrayLike) -> Floats:
        """Probabilities in [0, 1], of the shape of ``scores``."""
        z = self.slope * np.asarray(scores, dtype=np.float64) + self.intercept
        return np.asarray(0.5 * (1.0 + np.tanh(z / 2)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A step function that never falls: at each of ``knots`` (rising, shape (m,)) it takes the value of ``heights``
    (Zadrozny and Elkan 2002)."""

    knots: Floats
    heights: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        """Probabilities in [0, 1], of the shape of ``scores``: that of the last knot at or below each, else of the first."""
        place = np.searchsorted(self.knots, np.asarray(scores, dtype=np.float64), side="right") - 1
        return np.asarray(self.heights[np.maximum(place, 0)], dtype=np.float64)


def fit_platt(scores: ArrayLike, right: ArrayLike) -> Platt:
    """The logistic curve of scores (higher: surer; for P("Yes") its log-odds) with known outcomes, both of shape (n,).

    Outcomes count as (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) instead of 1 and 0, as Platt proposes, so that clean separation gives
    a finite slope. Raises InvalidInput unless both outcomes occur and all scores are finite.
    """
    from scipy import optimize

    x, y = _outcomes(scores, right)
    centre, scale = x.mean(), x.std() or 1.0
    z = (x - centre) / scale
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, intercept = parameters
        logits = slope * z + intercept
        wrong = 0.5 * (1.0 + np.tanh(logits / 2)) - target
        value = (np.logaddexp(0, logits) - target * logits).mean()
        return float(value), np.array([(wrong * z).mean(), wrong.mean()])

    slope, intercept = optimize.minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    return Platt(float(slope / scale), float(intercept - slope * centre / scale))


def fit_isotonic(scores: ArrayLike, right: ArrayLike) -> Isotonic:
    """The least-squares step function of scores (higher: surer) with known outcomes, both of shape (n,).

    Raises InvalidInput unless both outcomes occur and all scores are finite."""
    from scipy import optimize

    x, y = _outcomes(scores, right)
    knots, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    shares = np.bincount(inverse, weights=y) / counts
    return Isotonic(knots, np.asarray(optimize.isotonic_regression(shares, weights=counts).x))


def _outcomes(scores: ArrayLike, right: ArrayLike) -> tuple[Floats, Mask]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    if x.shape != y.shape or x.ndim != 1 or not y.any() or y.all() or not np.isfinite(x).all():
        raise InvalidInput(
            f"cannot calibrate: got {x.shape} scores ({int((~np.isfinite(x)).sum())} not finite) with {y.shape} outcomes "
            f"({int(y.sum())} right), expected one finite score per outcome, and right and wrong ones."
        )
    return x, y


# Judged only on what was not fitted on: folds, and scores as probabilities.

Fit = Callable[[Floats, Mask], Callable[[Floats], Floats]]
"""From scores and what happened, shape (n,), to a curve from scores to probabilities."""

FOLDS = 5


def folds_of(labels: Mask, folds: int = FOLDS, seed: int = 0) -> NDArray[np.int_]:
    """The fold of each example; every fold has its share of both classes."""
    random = np.random.default_rng(seed)
    folds_by_row = np.empty(len(labels), dtype=np.int_)
    for label in (False, True):
        places = np.flatnonzero(labels == label)
        folds_by_row[places] = random.permutation(len(places)) % folds
    return folds_by_row


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

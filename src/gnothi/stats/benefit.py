"""Will the other answer be better? Of two answers to a question, the chances that the second helps, harms or changes nothing.

Three yes-or-no questions, each a logistic regression of the same features: do the two answers differ in being right? If so, is
it the second that is right? If not, are both? Their strength (ridge) is chosen, and their odds are calibrated (Platt 1999), on
examples that they were not fitted on; both are folded into the weights, so that what is shown is what decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.logistic import Logistic, fit_path
from gnothi.stats.probabilities import FOLDS, fit_platt, folds_of

RIDGES = (3.0, 30.0, 300.0)
FEWEST_OF_EACH = 2 * FOLDS
"""Examples of each answer to a yes-or-no question below which its rate is all that is learnt."""


@dataclass(frozen=True, slots=True)
class Chances:
    """Of each question, shape (n,): the second answer right and the first wrong (``helped``), the reverse (``harmed``), and
    that either is right."""

    helped: Floats
    harmed: Floats
    first: Floats
    second: Floats

    @property
    def gain(self) -> Floats:
        """Right answers to be expected more from the second than from the first."""
        return self.helped - self.harmed


@dataclass(frozen=True, slots=True)
class Benefit:
    """``differ``: P(one of two answers is right, the other wrong); ``second``: P(it is the second | they differ); ``both``:
    P(both are right | they do not differ)."""

    differ: Logistic
    second: Logistic
    both: Logistic

    def __call__(self, features: ArrayLike) -> Chances:
        """``features`` has shape (n, d)."""
        x = np.asarray(features, dtype=np.float64)
        differ, second, both = self.differ(x), self.second(x), self.both(x)
        helped, harmed, same = differ * second, differ * (1 - second), (1 - differ) * both
        return Chances(helped, harmed, harmed + same, helped + same)


def fit_benefit(features: ArrayLike, first: ArrayLike, second: ArrayLike) -> Benefit:
    """Of ``features``, finite, shape (n, d), and whether the first and the second answer is right, shape (n,).

    What has too few examples of either kind is taken for a constant rate. Raises InvalidInput for other shapes."""
    x, a, b = np.asarray(features, dtype=np.float64), np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if x.ndim != 2 or a.shape != x.shape[:1] or b.shape != a.shape or not len(a) or not np.isfinite(x).all():
        raise InvalidInput(
            f"cannot learn where the second answer helps: got features of shape {x.shape} ({int((~np.isfinite(x)).sum())} not "
            f"finite) with {a.shape} and {b.shape} outcomes, expected finite features and both outcomes of each question."
        )
    differ = a != b
    return Benefit(_fit(x, differ), _fit(x[differ], b[differ]), _fit(x[~differ], b[~differ]))


def _fit(x: Floats, positive: Mask) -> Logistic:
    """The regression whose cross-fitted log-odds are the likeliest, calibrated on them."""
    if not x.shape[1] or min(positive.sum(), (~positive).sum()) < FEWEST_OF_EACH:
        return _rate(x.shape[1], positive)
    fold = folds_of(positive)
    odds = {ridge: np.empty(len(x)) for ridge in RIDGES}
    for held_out in range(FOLDS):
        test = fold == held_out
        for ridge, fitted in zip(RIDGES, fit_path(x[~test], positive[~test], RIDGES, precision=1e-8), strict=True):
            odds[ridge][test] = ((x[test] - fitted.centre) / fitted.scale) @ fitted.weights + fitted.intercept
    best = min(RIDGES, key=lambda ridge: _loss(odds[ridge], positive))
    (fitted,) = fit_path(x, positive, [best])
    curve = fit_platt(odds[best], positive)
    if curve.slope <= 0:  # on other examples it tells nothing, or the reverse
        return _rate(x.shape[1], positive)
    return Logistic(fitted.weights * curve.slope, fitted.intercept * curve.slope + curve.intercept, fitted.centre, fitted.scale)


def _rate(features: int, positive: Mask) -> Logistic:
    """A constant: the share of the positive, with one more of each kind (Laplace)."""
    odds = float(np.log((positive.sum() + 1) / ((~positive).sum() + 1)))
    return Logistic(np.zeros(features), odds, np.zeros(features), np.ones(features))


def _loss(odds: Floats, positive: Mask) -> float:
    return float((np.logaddexp(0, odds) - positive * odds).mean())

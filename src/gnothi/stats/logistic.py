"""Several numbers as one score: logistic regression with a ridge (Cox 1958; Hoerl and Kennard 1970).

Of few numbers (signals), or of many more than there are examples (a hidden state).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask


@dataclass(frozen=True, slots=True)
class Logistic:
    """P(positive) = 1 / (1 + exp(-(weights . standardised features + intercept))).

    ``weights``, ``centre`` and ``scale`` have shape (d,); features are standardised by ``centre`` and ``scale``."""

    weights: Floats
    intercept: float
    centre: Floats
    scale: Floats

    def __call__(self, features: ArrayLike) -> Floats:
        """Probabilities, shape (n,), of features of shape (n, d)."""
        x = (np.asarray(features, dtype=np.float64) - self.centre) / self.scale
        return np.asarray(0.5 * (1.0 + np.tanh((x @ self.weights + self.intercept) / 2)), dtype=np.float64)


def fit_logistic(features: ArrayLike, positive: ArrayLike, ridge: float = 1.0) -> Logistic:
    """Minimises the negative log-likelihood + ridge / 2 x |weights|² over standardised ``features`` of shape (n, d).

    The intercept is not shrunk. Raises InvalidInput unless both classes occur and all features are finite.
    """
    (fitted,) = fit_path(features, positive, [ridge])
    return fitted


def fit_path(features: ArrayLike, positive: ArrayLike, ridges: Sequence[float], precision: float = 1e-14) -> list[Logistic]:
    """``fit_logistic`` for each of ``ridges`` (more than 0), in their order, at little more than the cost of one.

    A fit ends where a step lowers the loss by less than ``precision`` of it; to compare ridges, 1e-8 is plenty.

    The best weights lie in the span of the examples: where there are fewer of these than features, they are sought there, in n
    dimensions instead of d. Each fit begins at the one with the next stronger ridge. Raises as ``fit_logistic``.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(positive, dtype=bool)
    if x.ndim != 2 or y.shape != x.shape[:1] or not y.any() or y.all() or not np.isfinite(x).all():
        raise InvalidInput(
            f"cannot combine signals: got features of shape {x.shape} ({int((~np.isfinite(x)).sum())} not finite) and "
            f"{y.shape} outcomes ({int(y.sum())} positive), expected finite features and outcomes of both kinds."
        )
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (x - centre) / scale
    # Of an orthonormal basis of the rows' span, what mixes the rows into it, and the rows' places in it.
    mixing, inner = _span(z) if len(z) < z.shape[1] else (None, z)
    parameters = np.zeros(inner.shape[1] + 1)
    fitted: dict[float, Logistic] = {}
    for ridge in sorted(set(ridges), reverse=True):
        parameters = _minimum(inner, y, ridge, parameters, precision)
        weights = parameters[:-1] if mixing is None else (mixing @ parameters[:-1]) @ z
        fitted[ridge] = Logistic(weights, float(parameters[-1]), centre, scale)
    return [fitted[ridge] for ridge in ridges]


def _span(z: Floats) -> tuple[Floats, Floats]:
    """M and C, both of shape (n, rank), for which the columns of zᵀM are orthonormal and z = C (zᵀM)ᵀ."""
    values, vectors = np.linalg.eigh(z @ z.T)
    positive = values > values[-1] * len(z) * np.finfo(np.float64).eps
    lengths = np.sqrt(values[positive])
    return vectors[:, positive] / lengths, vectors[:, positive] * lengths


def _minimum(z: Floats, y: Mask, ridge: float, start: Floats, precision: float) -> Floats:
    from scipy import optimize

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, intercept = parameters[:-1], parameters[-1]
        logits = z @ weights + intercept
        residual = 0.5 * (1.0 + np.tanh(logits / 2)) - y
        value = (np.logaddexp(0, logits) - y * logits).sum() + ridge / 2 * weights @ weights
        return float(value), np.append(z.T @ residual + ridge * weights, residual.sum())

    result = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": precision})
    return np.asarray(result.x)

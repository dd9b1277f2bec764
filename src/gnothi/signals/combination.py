"""Several signals as one score: logistic regression with a ridge (Cox 1958; Hoerl and Kennard 1970)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnothi.errors import InvalidInput

Floats = NDArray[np.float64]


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
    from scipy import optimize

    x, y = np.asarray(features, dtype=np.float64), np.asarray(positive, dtype=bool)
    if x.ndim != 2 or y.shape != x.shape[:1] or not y.any() or y.all() or not np.isfinite(x).all():
        raise InvalidInput(
            f"cannot combine signals: got features of shape {x.shape} ({int((~np.isfinite(x)).sum())} not finite) and "
            f"{y.shape} outcomes ({int(y.sum())} positive), expected finite features and outcomes of both kinds."
        )
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (x - centre) / scale

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, intercept = parameters[:-1], parameters[-1]
        logits = z @ weights + intercept
        residual = 0.5 * (1.0 + np.tanh(logits / 2)) - y
        value = (np.logaddexp(0, logits) - y * logits).sum() + ridge / 2 * weights @ weights
        return float(value), np.append(z.T @ residual + ridge * weights, residual.sum())

    found = optimize.minimize(
        loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": 1e-14}
    )
    return Logistic(np.asarray(found.x[:-1]), float(found.x[-1]), centre, scale)

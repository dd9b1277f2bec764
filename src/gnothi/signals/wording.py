"""What the wording of a question tells: a logistic regression over its words and pairs of neighbouring words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_DIGITS = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordClassifier:
    """Tells to which of c classes a text belongs. ``idf`` is each feature's weight in a text's vector, ``weights``
    (features + 1, c) those in the regression, the last row being the constants."""

    idf: Mapping[str, float]
    weights: Floats

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Probabilities, shape (n, c); each row adds up to 1."""
        logits = matrix(texts, self.idf) @ self.weights
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the constants, and each feature's idf before its weights."""
        rows = zip(self.idf.items(), self.weights.tolist(), strict=False)
        return {"constants": self.weights[-1].tolist(), "features": {feature: [idf, *row] for (feature, idf), row in rows}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], classes: int) -> WordClassifier:
        """Raises ValueError, KeyError, TypeError or AttributeError for data that is not of ``as_dict``."""
        features = data["features"]
        weights = np.array([*(row[1:] for row in features.values()), data["constants"]], float)
        if weights.shape != (len(features) + 1, classes):
            raise ValueError(f"weights of shape {weights.shape}")
        return cls({feature: float(row[0]) for feature, row in features.items()}, weights)


def fit_words(
    texts: Sequence[str], classes: Sequence[int], count: int, strength: float = 1.0, at_least: int = 2
) -> WordClassifier:
    """Minimises strength · Σ -ln P(class) + ½ Σ weight² (constants are free) over features that ``at_least`` texts have.

    ``classes`` are numbers below ``count``. A feature counts as ln((N + 1) / (df + 1)) + 1 and each text's vector has length 1.
    """
    from scipy.optimize import minimize

    frequency = Counter(feature for text in texts for feature in set(_features(text)))
    known = sorted(feature for feature, times in frequency.items() if times >= at_least)
    idf = {feature: round(math.log((len(texts) + 1) / (frequency[feature] + 1)) + 1, _DIGITS) for feature in known}
    inputs = matrix(texts, idf)
    targets = np.eye(count)[list(classes)]
    shape = (inputs.shape[1], count)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        logits = inputs @ weights
        top = logits.max(axis=1, keepdims=True)
        normaliser = top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        penalised = weights[:-1]
        value = strength * float((normaliser - (logits * targets).sum(axis=1, keepdims=True)).sum())
        gradient = strength * (inputs.T @ (np.exp(logits - normaliser) - targets))
        gradient[:-1] += penalised
        return value + 0.5 * float((penalised**2).sum()), gradient.ravel()

    solution: Any = minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return WordClassifier(idf, np.asarray(solution.x, np.float64).reshape(shape).round(_DIGITS))


def _features(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [*words, *(f"{one} {other}" for one, other in zip(["", *words], [*words, ""], strict=True))]


def matrix(texts: Sequence[str], idf: Mapping[str, float]) -> Any:
    """Sparse, shape (texts, features + 1); rows of length 1, and a last column of ones for the constants."""
    from scipy.sparse import csr_array

    columns = {feature: column for column, feature in enumerate(idf)}
    starts, places, values = [0], list[int](), list[float]()
    for text in texts:
        counted = Counter(feature for feature in _features(text) if feature in columns)
        raw = {feature: (1 + math.log(times)) * idf[feature] for feature, times in counted.items()}
        length = math.sqrt(math.fsum(value * value for value in raw.values())) or 1.0
        places += [*(columns[feature] for feature in raw), len(columns)]
        values += [*(value / length for value in raw.values()), 1.0]
        starts.append(len(places))
    return csr_array((values, places, starts), shape=(len(texts), len(columns) + 1))

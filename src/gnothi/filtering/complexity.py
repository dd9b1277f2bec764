"""How much retrieval a question takes: none, once, or step by step (Adaptive-RAG: Jeong et al. 2024, section 3.2).

A logistic regression over words and pairs of neighbouring words tells, trained by ``gnothi train complexity`` on questions of
which it is known what sufficed. A folder holds ``complexity.json``: the features with their weights, and how they were found.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidInput

FORMAT = 1
FILE = "complexity.json"
COMMAND = "gnothi train complexity"
STRATEGIES = ("none", "once", "steps")
"""The paper's A, B and C."""

_WORD = re.compile(r"\w+")
_DIGITS = 6


class Probabilities(NamedTuple):
    """Of each strategy being the simplest that suffices; they add up to 1."""

    none: float
    once: float
    steps: float

    @property
    def strategy(self) -> str:
        """The likeliest one, of equally likely ones the simplest."""
        return STRATEGIES[max(range(len(STRATEGIES)), key=lambda place: (self[place], -place))]


@runtime_checkable
class ComplexitySource(Protocol):
    """Tells how much retrieval a question takes."""

    async def complexity(self, question: str) -> Probabilities: ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """A training question and the simplest strategy that led to the right answer, one of ``STRATEGIES``."""

    question: str
    strategy: str


@dataclass(frozen=True)
class ComplexityClassifier:
    """A ``ComplexitySource``. ``idf`` is each feature's weight in a question's vector, ``weights`` (features + 1, 3) those in
    the regression, the last row being the constants."""

    idf: Mapping[str, float]
    weights: NDArray[np.float64]
    name: str = ""

    async def complexity(self, question: str) -> Probabilities:
        return self.predict([question])[0]

    def predict(self, questions: Sequence[str]) -> list[Probabilities]:
        logits = _matrix(questions, self.idf) @ self.weights
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return [Probabilities(*map(float, row)) for row in shares]

    async def aclose(self) -> None:
        return None


def fit(labelled: Sequence[Labelled], strength: float = 1.0, at_least: int = 2) -> ComplexityClassifier:
    """Minimises strength · Σ -ln P(label) + ½ Σ weight² (constants are free) over features that ``at_least`` questions have.

    A feature counts as ln((N + 1) / (df + 1)) + 1 and each question's vector has length 1. A strategy without questions gets
    probabilities near 0. Raises InvalidInput for fewer than two strategies.
    """
    from scipy.optimize import minimize

    counts = Counter(one.strategy for one in labelled)
    if len(counts) < 2 or not counts.keys() <= set(STRATEGIES):
        found = ", ".join(f"{count} of {strategy!r}" for strategy, count in sorted(counts.items())) or "none"
        raise InvalidInput(f"got questions with these labels: {found}; expected at least two of {', '.join(STRATEGIES)}.")
    questions = [one.question for one in labelled]
    frequency = Counter(feature for question in questions for feature in set(_features(question)))
    known = sorted(feature for feature, count in frequency.items() if count >= at_least)
    idf = {feature: math.log((len(questions) + 1) / (frequency[feature] + 1)) + 1 for feature in known}
    inputs = _matrix(questions, idf)
    targets = np.array([[one.strategy == strategy for strategy in STRATEGIES] for one in labelled], float)
    shape = (inputs.shape[1], len(STRATEGIES))

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
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
    weights: NDArray[np.float64] = np.asarray(solution.x, np.float64).reshape(shape).round(_DIGITS)
    return ComplexityClassifier(idf, weights)


def _features(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [*words, *(f"{one} {other}" for one, other in zip(["", *words], [*words, ""], strict=True))]


def _matrix(questions: Sequence[str], idf: Mapping[str, float]) -> Any:
    """Sparse, shape (questions, features + 1); rows of length 1, and a last column of ones for the constants."""
    from scipy.sparse import csr_array

    columns = {feature: column for column, feature in enumerate(idf)}
    starts, places, values = [0], list[int](), list[float]()
    for question in questions:
        counted = Counter(feature for feature in _features(question) if feature in columns)
        raw = {feature: (1 + math.log(times)) * idf[feature] for feature, times in counted.items()}
        length = math.sqrt(math.fsum(value * value for value in raw.values())) or 1.0
        places += [*(columns[feature] for feature in raw), len(columns)]
        values += [*(value / length for value in raw.values()), 1.0]
        starts.append(len(places))
    return csr_array((values, places, starts), shape=(len(questions), len(columns) + 1))


def write_complexity(path: Path, classifier: ComplexityClassifier, origin: Mapping[str, Any]) -> None:
    """Makes the folder, or makes it anew; ``origin`` says what it was learnt from."""
    path.mkdir(parents=True, exist_ok=True)
    rows = {
        feature: [idf, *row] for (feature, idf), row in zip(classifier.idf.items(), classifier.weights.tolist(), strict=False)
    }
    document = {"format": FORMAT, **origin, "constants": classifier.weights[-1].tolist(), "features": rows}
    (path / FILE).write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", "utf-8")


def open_complexity(path: str | Path) -> ComplexityClassifier:
    """The classifier of a folder. Raises InvalidInput where there is none."""
    path = Path(path)
    try:
        document: Any = json.loads((path / FILE).read_text("utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}, this version reads {FORMAT}")
        features = document["features"]
        weights = np.array([*(row[1:] for row in features.values()), document["constants"]], float)
        if weights.shape != (len(features) + 1, len(STRATEGIES)):
            raise ValueError(f"weights of shape {weights.shape}")
        return ComplexityClassifier({feature: float(row[0]) for feature, row in features.items()}, weights, str(path))
    except OSError:
        raise InvalidInput(f"{path} holds no complexity classifier: cannot read {FILE}. Make one with `{COMMAND}`.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path}: got {type(error).__name__} ({error}), expected a folder made by `{COMMAND}`.") from error

"""From hidden states and wordings of training questions to the chance of a wrong answer, with what it is worth on others.

What has to be chosen (layer, site, ridge) is chosen by cross-validation; figures are of questions that neither the choice nor
the fit has seen, so within each fold the choice is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidInput
from gnothi.signals.probe_folder import CLASSES
from gnothi.signals.wording import WordClassifier, fit_words
from gnothi.stats.logistic import Logistic, fit_path
from gnothi.stats.probabilities import FOLDS, folds_of
from gnothi.types import Site

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int_]

INNER_FOLDS = 3
RIDGES = tuple(10.0**power for power in (-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5))
STRENGTHS = (0.1, 1.0, 10.0)
_ROUGHLY = 1e-8
FEWEST = 10
"""Of each class; with fewer, folds would lack one."""


class View(NamedTuple):
    """Where a hidden state is read: at the end of which prompt, and in the model."""

    prompt: str
    layer: int | None
    site: Site


@dataclass(frozen=True, slots=True)
class StateFit:
    """The regression on the chosen view. ``losses`` are the mean cross-validated log losses (nats) of all views, each at its
    best ridge."""

    view: View
    ridge: float
    regression: Logistic
    losses: Mapping[View, float]


@dataclass(frozen=True, slots=True)
class WordFit:
    strength: float
    words: WordClassifier


def best_split(values: Floats) -> float:
    """The threshold that leaves the least variance within the two groups (semantic entropy probes, Kossen et al. 2024).

    Infinite values (nothing could be measured) are above any threshold. Raises InvalidInput where all values are equal."""
    finite = np.sort(values[np.isfinite(values)])
    if not len(finite) or (finite[0] == finite[-1] and len(finite) == len(values)):
        raise InvalidInput(f"got {len(values)} equal uncertainties, expected different ones. Give more questions.")
    if finite[0] == finite[-1]:
        return float(finite[0])
    below = np.arange(1, len(finite))
    sums, squares = np.cumsum(finite), np.cumsum(finite**2)
    within = squares[-1] - sums[:-1] ** 2 / below - (sums[-1] - sums[:-1]) ** 2 / (len(finite) - below)
    within[finite[1:] == finite[:-1]] = np.inf  # equal values are not parted
    cut = int(np.argmin(within))
    return float((finite[cut] + finite[cut + 1]) / 2)


def require_both(labels: Mask, what: str) -> None:
    """Raise InvalidInput unless each class has at least ``FEWEST`` examples; ``what`` names the positive ones."""
    positive = int(labels.sum())
    if min(positive, len(labels) - positive) < FEWEST:
        raise InvalidInput(
            f"cannot train a probe: got {positive} questions of {len(labels)} that are {what}, expected at least {FEWEST} that "
            "are and as many that are not. Give more questions, or ones of which the model knows some and misses some."
        )


def fit_states(views: Mapping[View, Floats], labels: Mask) -> StateFit:
    """Of features by view, each of shape (n, d): the view and ridge of least log loss by cross-validation, fitted on all."""
    fold = folds_of(labels, INNER_FOLDS)
    losses: dict[View, tuple[float, float]] = {}
    for view, features in views.items():
        predictions = np.empty((len(RIDGES), len(labels)))
        for held in range(INNER_FOLDS):
            train = fold != held
            for place, regression in enumerate(fit_path(features[train], labels[train], RIDGES, _ROUGHLY)):
                predictions[place, ~train] = regression(features[~train])
        losses[view] = min((log_loss(row, labels), ridge) for row, ridge in zip(predictions, RIDGES, strict=True))
    view = min(losses, key=lambda one: losses[one])
    ridge = losses[view][1]
    (regression,) = fit_path(views[view], labels, [ridge])
    return StateFit(view, ridge, regression, {one: loss for one, (loss, _) in losses.items()})


def fit_wording(texts: Sequence[str], labels: Mask) -> WordFit:
    """As ``fit_states``, of the questions' words."""
    fold = folds_of(labels, INNER_FOLDS)
    predictions = np.empty((len(STRENGTHS), len(labels)))
    for held in range(INNER_FOLDS):
        train, rest = np.flatnonzero(fold != held).tolist(), np.flatnonzero(fold == held).tolist()
        for place, strength in enumerate(STRENGTHS):
            predictions[place, rest] = _words([texts[row] for row in train], labels[train], strength)(
                [texts[row] for row in rest]
            )[:, 1]
    _, strength = min((log_loss(row, labels), strength) for row, strength in zip(predictions, STRENGTHS, strict=True))
    return WordFit(strength, _words(texts, labels, strength))


def held_out(labels: Mask, fit: Callable[[Rows], Callable[[Rows], Floats]]) -> Floats:
    """Predictions for each example by a fit that has not seen it: ``fit`` takes rows and gives what predicts others."""
    fold = folds_of(labels, seed=1)
    predictions = np.empty(len(labels))
    for held in range(FOLDS):
        rest = np.flatnonzero(fold == held)
        predictions[rest] = fit(np.flatnonzero(fold != held))(rest)
    return predictions


def log_loss(predictions: Floats, labels: Mask) -> float:
    """Mean -ln of the predicted probability of the label, in nats."""
    return float(-np.log(np.clip(np.where(labels, predictions, 1 - predictions), 1e-12, None)).mean())


def _words(texts: Sequence[str], labels: Mask, strength: float) -> WordClassifier:
    return fit_words(texts, labels.astype(int).tolist(), len(CLASSES), strength)

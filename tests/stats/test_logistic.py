from __future__ import annotations

import numpy as np
import pytest

from gnothi.errors import InvalidInput
from gnothi.stats.logistic import fit_logistic, fit_path
from tests.messages import refused


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    features = random.normal(size=(n, 3)) * [1, 10, 0.1] + [0, 5, -2]
    logits = features @ [0.5, -0.1, 8] + 17
    return features, random.random(n) < 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_equals_the_library(ridge: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn, to compare with, is not installed")
    features, positive = drawn(300)
    own = fit_logistic(features, positive, ridge)
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    other = linear_model.LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=1000).fit(standardised, positive)
    assert own.weights == pytest.approx(other.coef_[0], abs=1e-4)
    assert own.intercept == pytest.approx(other.intercept_[0], abs=1e-4)
    assert own(features) == pytest.approx(other.predict_proba(standardised)[:, 1], abs=1e-4)


def test_finds_what_the_outcomes_were_drawn_from() -> None:
    found = fit_logistic(*drawn(20_000), ridge=1e-6)
    assert found.weights / found.scale == pytest.approx([0.5, -0.1, 8], rel=0.15)


def test_clean_separation_and_constant_features_stay_finite() -> None:
    found = fit_logistic([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]], [False, False, True, True])
    assert np.isfinite(found.weights).all()
    low, *_, high = found([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    assert low < 0.5 < high
    assert low + high == pytest.approx(1)


@pytest.mark.parametrize(
    ("features", "positive"), [([[1.0], [2.0]], [True, True]), ([[1.0], [np.inf]], [True, False]), ([1.0, 2.0], [True, False])]
)
def test_input_that_makes_no_sense(features: list[list[float]], positive: list[bool]) -> None:
    with refused(InvalidInput):
        fit_logistic(features, positive)


@pytest.mark.parametrize("ridge", [0.1, 30.0])
def test_more_features_than_examples_equal_the_library(ridge: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn, to compare with, is not installed")
    random = np.random.default_rng(1)
    features = random.normal(size=(40, 200)) @ random.normal(size=(200, 200)) + 3
    positive = features[:, 0] + 5 * random.normal(size=40) > 3
    own = fit_logistic(features, positive, ridge)
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    other = linear_model.LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000).fit(standardised, positive)
    assert own.weights == pytest.approx(other.coef_[0], abs=1e-4)
    assert own.intercept == pytest.approx(other.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("size", [(60, 8), (20, 50)])
def test_a_path_is_each_of_its_fits(size: tuple[int, int]) -> None:
    random = np.random.default_rng(2)
    features = random.normal(size=size)
    positive = features[:, 0] + random.normal(size=size[0]) > 0
    ridges = [10.0, 0.5, 100.0, 0.5]
    path = fit_path(features, positive, ridges)
    assert len(path) == 4
    for found, ridge in zip(path, ridges, strict=True):
        assert found(features) == pytest.approx(fit_logistic(features, positive, ridge)(features), abs=1e-4)

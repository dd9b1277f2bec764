from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.signals.wording import WordClassifier, fit_words, matrix
from tests.messages import refused

NAMES = ("Ada", "Bram", "Corda", "Doran", "Elm", "Fane")
FORMS = ("Who is {}?", "Where was {} born?", "Where was the mother of {} born?")
TEXTS = [form.format(name) for form in FORMS for name in NAMES]
CLASSES = [number for number in range(len(FORMS)) for _ in NAMES]


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_it_agrees_with_scikit_learn(strength: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    ours = fit_words(TEXTS, CLASSES, 3, strength)
    inputs = matrix(TEXTS, ours.idf)[:, :-1]
    theirs: Any = linear_model.LogisticRegression(C=strength, tol=1e-8, max_iter=5000).fit(inputs, CLASSES)
    assert np.allclose(ours(TEXTS), theirs.predict_proba(inputs), atol=1e-3)


def test_the_optimum_is_one() -> None:
    """The gradient of the objective, by differences, is nought."""
    classifier = fit_words(TEXTS, CLASSES, 3, strength=1.0)

    def loss(weights: Any) -> float:
        told = WordClassifier(classifier.idf, weights)(TEXTS)
        fitted = -np.log(told[np.arange(len(TEXTS)), CLASSES]).sum()
        return float(fitted + 0.5 * (weights[:-1] ** 2).sum())

    rng = np.random.default_rng(0)
    for _ in range(10):
        direction = rng.standard_normal(classifier.weights.shape)
        step = 1e-3 * direction / np.linalg.norm(direction)
        slope = (loss(classifier.weights + step) - loss(classifier.weights - step)) / 2e-3
        assert abs(slope) < 1e-2


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.tuples(st.text(max_size=12), st.integers(0, 1)), min_size=1, max_size=8), st.text(max_size=20))
def test_any_text_gets_probabilities(drawn: list[tuple[str, int]], asked: str) -> None:
    made = fit_words([text for text, _ in drawn], [one for _, one in drawn], 2)
    (row,) = made([asked])
    assert row.sum() == pytest.approx(1)
    again = WordClassifier.from_dict(made.as_dict(), 2)
    assert (again([asked]) == made([asked])).all()


@pytest.mark.parametrize("data", [{"features": {"a": [1.0]}, "constants": [0.0, 0.0]}, {"features": {}, "constants": [0.0]}])
def test_data_of_another_shape_is_refused(data: dict[str, Any]) -> None:
    with refused(ValueError):
        WordClassifier.from_dict(data, 2)

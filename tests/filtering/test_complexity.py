from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.filtering.complexity import (
    FILE,
    STRATEGIES,
    ComplexitySource,
    Labelled,
    Probabilities,
    _matrix,
    fit,
    open_complexity,
    write_complexity,
)

NAMES = ("Ada", "Bram", "Corda", "Doran", "Elm", "Fane")
LABELLED = [
    *(Labelled(f"Who is {name}?", "none") for name in NAMES),
    *(Labelled(f"Where was {name} born?", "once") for name in NAMES),
    *(Labelled(f"Where was the mother of {name} born?", "steps") for name in NAMES),
]


def test_it_tells_by_wording() -> None:
    told = fit(LABELLED).predict(["Who is Odile?", "Where was Odile born?", "Where was the mother of Odile born?"])
    assert [one.strategy for one in told] == list(STRATEGIES)
    assert all(sum(one) == pytest.approx(1) for one in told)


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_it_agrees_with_scikit_learn(strength: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    asked = [one.question for one in LABELLED]
    ours = fit(LABELLED, strength)
    inputs = _matrix(asked, ours.idf)[:, :-1]
    labels = [STRATEGIES.index(one.strategy) for one in LABELLED]
    theirs: Any = linear_model.LogisticRegression(C=strength, tol=1e-8, max_iter=5000).fit(inputs, labels)
    assert np.allclose(ours.predict(asked), theirs.predict_proba(inputs), atol=1e-3)


def test_the_optimum_is_one() -> None:
    """The gradient of the objective, by differences, is nought."""
    classifier = fit(LABELLED, strength=1.0)

    def loss(weights: Any) -> float:
        moved = type(classifier)(classifier.idf, weights)
        chances = moved.predict([one.question for one in LABELLED])
        fitted = -sum(np.log(chance[STRATEGIES.index(one.strategy)]) for chance, one in zip(chances, LABELLED, strict=True))
        return float(fitted + 0.5 * (weights[:-1] ** 2).sum())

    rng = np.random.default_rng(0)
    for _ in range(10):
        direction = rng.standard_normal(classifier.weights.shape)
        step = 1e-3 * direction / np.linalg.norm(direction)
        slope = (loss(classifier.weights + step) - loss(classifier.weights - step)) / 2e-3
        assert abs(slope) < 1e-2


@given(st.lists(st.tuples(st.text(max_size=12), st.sampled_from(STRATEGIES)), min_size=2, max_size=8), st.text(max_size=20))
def test_any_text_gets_probabilities(drawn: list[tuple[str, str]], asked: str) -> None:
    labelled = [Labelled(*one) for one in drawn]
    if len({one.strategy for one in labelled}) < 2:
        with pytest.raises(InvalidInput, match="at least two"):
            fit(labelled)
        return
    (told,) = fit(labelled).predict([asked])
    assert sum(told) == pytest.approx(1)
    assert min(told) >= 0


def test_equally_likely_is_the_simplest() -> None:
    assert Probabilities(0.4, 0.4, 0.2).strategy == "none"
    assert Probabilities(0.2, 0.4, 0.4).strategy == "once"


async def test_written_and_read(tmp_path: Path) -> None:
    made = fit(LABELLED)
    write_complexity(tmp_path / "c", made, {"labels": {}})
    read = open_complexity(tmp_path / "c")
    assert isinstance(read, ComplexitySource)
    assert await read.complexity("Who is Mira?") == await made.complexity("Who is Mira?")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1, "features": {"a": [1]}, "constants": [0, 0, 0]}'])
def test_what_cannot_be_read(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="holds no complexity classifier"):
        open_complexity(tmp_path)
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InvalidInput, match="gnothi train complexity"):
        open_complexity(tmp_path)

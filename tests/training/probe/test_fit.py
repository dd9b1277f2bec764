from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.stats.auroc import auroc
from gnothi.training.probe.fit import View, best_split, fit_states, fit_wording, held_out, log_loss, require_both
from tests.messages import refused

GOOD, POOR = View("answer", 2, "residual"), View("draft", 0, "ffn")


def drawn(n: int, d: int = 6, seed: int = 0) -> tuple[dict[View, np.ndarray], np.ndarray]:
    """One view tells most of the labels, the other none."""
    random = np.random.default_rng(seed)
    good, poor = random.normal(size=(2, n, d))
    return {POOR: poor, GOOD: good * 100}, good[:, 0] + 0.3 * random.normal(size=n) > 0


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_the_best_split_leaves_the_least_variance_within(values: list[float]) -> None:
    array = np.array(values)
    if len(set(values)) < 2:
        with pytest.raises(InvalidInput):
            best_split(array)
        return

    def within(threshold: float) -> float:
        groups = array[array > threshold], array[array <= threshold]
        return float(sum(((group - group.mean()) ** 2).sum() for group in groups if len(group)))

    found = best_split(array)
    distinct = sorted(set(values))
    best = min(within((low + high) / 2) for low, high in pairwise(distinct))
    assert within(found) == pytest.approx(best, abs=1e-6)


def test_what_could_not_be_measured_is_uncertain() -> None:
    assert best_split(np.array([0.0, 1.0, np.inf])) == 0.5
    assert best_split(np.array([1.0, 1.0, np.inf])) == 1.0


def test_the_view_that_tells_is_chosen() -> None:
    views, labels = drawn(200)
    fitted = fit_states(views, labels)
    assert fitted.view == GOOD
    assert fitted.losses[GOOD] < 0.4 < fitted.losses[POOR]
    assert auroc(fitted.regression(views[GOOD]), labels) > 0.95  # type: ignore[operator]


def test_figures_are_of_questions_not_seen() -> None:
    """With many more features than examples anything can be fitted, and nothing is told of others."""
    random = np.random.default_rng(3)
    features, labels = random.normal(size=(120, 400)), random.random(120) > 0.5

    def fit(rows: np.ndarray) -> object:
        fitted = fit_states({GOOD: features[rows]}, labels[rows])
        return lambda others: fitted.regression(features[others])

    told = held_out(labels, fit)  # type: ignore[arg-type]
    assert 0.3 < (auroc(told, labels) or 0) < 0.7


def test_wording() -> None:
    texts = [f"Who is {name}?" for name in "abcdefghijklmnop"] + [f"When was {name}?" for name in "abcdefghijklmnop"]
    labels = np.array([False] * 16 + [True] * 16)
    told = fit_wording(texts, labels).words(["Who is z?", "When was z?"])[:, 1]
    assert told[0] < 0.5 < told[1]


def test_log_loss() -> None:
    assert log_loss(np.array([0.5, 0.25]), np.array([True, False])) == pytest.approx(-np.log([0.5, 0.75]).mean())
    assert np.isfinite(log_loss(np.array([0.0]), np.array([True])))


def test_too_few_of_a_class() -> None:
    with refused(InvalidInput):
        require_both(np.arange(50) < 9, "answered wrongly")

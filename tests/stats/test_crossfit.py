"""Folds, and probabilities fitted on the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.crossfit import crossfit, crossfit_probabilities, folds_of
from gnothi.stats.probabilities import fit_isotonic
from gnothi.stats.reliability import ece


def test_every_fold_has_both_classes() -> None:
    labels = np.array([True] * 10 + [False] * 30)
    fold = folds_of(labels, 5)
    assert [int(labels[fold == held].sum()) for held in range(5)] == [2] * 5
    assert [int((~labels[fold == held]).sum()) for held in range(5)] == [6] * 5


def test_a_question_has_no_part_in_its_own_probability() -> None:
    random = np.random.default_rng(0)
    sample = random.random(60)
    happened = random.random(60) < sample
    told: list[float] = []

    def fit(seen: Floats, labels: Mask) -> Callable[[Floats], Floats]:
        assert labels.tolist() == [bool(happened[sample == score][0]) for score in seen]

        def curve(scores: Floats) -> Floats:
            assert not set(scores.tolist()) & set(seen.tolist())
            told.extend(scores.tolist())
            return scores

        return curve

    assert crossfit(fit, sample, happened) == pytest.approx(sample)
    assert sorted(told) == sorted(sample.tolist())  # each once


def test_crossfitted_probabilities_are_calibrated_and_ordered() -> None:
    random = np.random.default_rng(7)
    scores = random.normal(size=4000)
    happened = random.random(4000) < 1 / (1 + np.exp(-2 * scores))
    predicted = crossfit_probabilities(scores, happened)
    assert predicted is not None
    error = ece(predicted, happened)
    assert error is not None
    assert error < 0.03
    assert np.corrcoef(predicted, 1 / (1 + np.exp(-2 * scores)))[0, 1] > 0.97
    noise = crossfit_probabilities(scores, random.random(4000) < 0.3)
    assert noise is not None
    assert noise.mean() == pytest.approx(0.3, abs=0.03)


def test_crossfitting_needs_enough_of_both() -> None:
    assert crossfit_probabilities([1.0] * 20, [True] * 20) is None
    assert crossfit_probabilities([1.0, 2.0], [True, False]) is None
    assert crossfit_probabilities(range(20), [True] + [False] * 19) is None
    with_infinities = crossfit_probabilities([-np.inf, 0, 1, 2, np.inf] * 4, [False, False, True, True, True] * 4)
    assert with_infinities is not None
    assert with_infinities.min() == 0
    assert with_infinities.max() == 1


@given(st.integers(0, 50))
def test_crossfitted_probabilities_are_those_of_the_curve_that_calibrations_keep(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=60).round(1)  # with ties
    happened = random.random(60) < 0.5
    assert crossfit_probabilities(scores, happened) == pytest.approx(crossfit(fit_isotonic, scores, happened))

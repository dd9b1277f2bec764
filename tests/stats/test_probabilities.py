"""None"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.probabilities import balanced_threshold, crossfit, crossfit_probabilities, fit_isotonic, fit_platt, folds_of
from gnothi.stats.reliability import ece
from tests.messages import refused

OUTCOMES = st.lists(st.tuples(st.floats(-10, 10), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({wrong for _, wrong in rows}) == 2 and len({score for score, _ in rows}) > 1
)


def _balance(rows: list[tuple[float, bool]], threshold: float) -> float:
    fired = {wrong: [score > threshold for score, other in rows if other == wrong] for wrong in (True, False)}
    return float(np.mean(fired[True]) - np.mean(fired[False]))


@given(OUTCOMES)
def test_no_observed_cut_is_better(rows: list[tuple[float, bool]]) -> None:
    chosen = balanced_threshold([score for score, _ in rows], [wrong for _, wrong in rows])
    distinct = sorted({score for score, _ in rows})
    for cut in distinct[:-1]:
        assert _balance(rows, chosen) >= _balance(rows, cut) - 1e-9


def test_between_classes_that_part_cleanly_it_stands_in_the_middle_of_the_gap() -> None:
    assert balanced_threshold([-6.1, -6.0, -2.0, 0.0], [False, False, True, True]) == -4.0


def test_what_could_not_be_measured_is_above_every_threshold() -> None:
    assert balanced_threshold([1.0, 2.0, float("inf")], [False, True, True]) == 1.5


@pytest.mark.parametrize("wrong", [[True, True], [False, False]])
def test_one_class_alone_says_nothing(wrong: list[bool]) -> None:
    with refused(InvalidInput):
        balanced_threshold([0.0, 1.0], wrong)


def test_one_score_for_all_is_the_threshold_itself() -> None:
    assert balanced_threshold([3.0, 3.0], [True, False]) == 3.0


def _drawn(n: int, slope: float, intercept: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    scores = random.normal(0, 3, n)
    return scores, random.random(n) < 1 / (1 + np.exp(-(slope * scores + intercept)))


def test_platt_finds_the_curve_that_outcomes_were_drawn_from() -> None:
    platt = fit_platt(*_drawn(20_000, 0.8, -0.5))
    assert (platt.slope, platt.intercept) == pytest.approx((0.8, -0.5), abs=0.05)
    assert platt([-1e9, 1e9]).tolist() == [0.0, 1.0]


def test_platt_stays_finite_where_the_classes_part_cleanly() -> None:
    platt = fit_platt([1.0, 1.0, 4.0, 4.0], [False, False, True, True])
    low, high = platt([1.0, 4.0])
    assert low == pytest.approx(0.25, abs=1e-4)  # 1 / (2 + 2), Platt's target for two negatives
    assert high == pytest.approx(0.75, abs=1e-4)


def test_isotonic_by_hand() -> None:
    isotonic = fit_isotonic([1, 2, 3, 4, 5, 5], [0, 1, 0, 1, 1, 0])
    assert isotonic([0, 1, 2, 3.5, 4, 9]).tolist() == pytest.approx([0, 0, 0.5, 0.5, 2 / 3, 2 / 3])


@given(OUTCOMES)
def test_isotonic_never_falls_and_keeps_the_mean(rows: list[tuple[float, bool]]) -> None:
    scores, right = np.array([score for score, _ in rows]), np.array([label for _, label in rows])
    fitted = fit_isotonic(scores, right)(np.sort(scores))
    assert (np.diff(fitted) >= -1e-12).all()
    assert fitted.mean() == pytest.approx(right.mean())


def test_calibrated_probabilities_are_reliable() -> None:
    scores, right = _drawn(4000, 0.3, 0.4)
    raw = 1 / (1 + np.exp(-scores))
    for fitted in (fit_platt(*_drawn(3000, 0.3, 0.4)), fit_isotonic(*_drawn(3000, 0.3, 0.4))):
        better, before = ece(fitted(scores), right), ece(raw, right)
        assert better is not None
        assert before is not None
        assert better < 0.05 < before


@pytest.mark.parametrize(
    ("scores", "right"), [([1.0, 2.0], [True, True]), ([1.0, np.inf], [True, False]), ([1.0], [True, False])]
)
def test_what_cannot_be_calibrated(scores: list[float], right: list[bool]) -> None:
    for fit in (fit_platt, fit_isotonic):
        with refused(InvalidInput):
            fit(scores, right)


# Folds, and probabilities fitted on the others.


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

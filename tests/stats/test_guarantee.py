from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gnothi.errors import InvalidInput, InvalidSetting, PromiseRefused
from gnothi.stats.guarantee import (
    EPSILON,
    SPLIT,
    Guarantee,
    fewest,
    guaranteed_threshold,
    most_wrong,
    promised,
    questions_needed,
    sequence,
    tail,
)
from tests.messages import refused

SHARES = st.floats(0.01, 0.9)


def test_tails_by_hand() -> None:
    assert tail(0, 3, 0.5) == pytest.approx(1 / 8)
    assert tail(1, 3, 0.5) == pytest.approx(4 / 8)
    assert tail(0, 0, 0.3) == 1.0  # nothing trusted, nothing shown


def test_the_fewest_questions_by_hand() -> None:
    # 0.9^21 = .1094 > .1 >= 0.9^22 = .0985
    assert fewest(0.1, 0.1) == 22
    assert fewest(0.5, 0.25) == 2
    assert fewest(0.5, 0.5) == 1


@given(SHARES, st.floats(0.01, 0.5))
def test_fewest_is_the_first_number_that_suffices(target: float, epsilon: float) -> None:
    needed = fewest(target, epsilon)
    assert stats.binom.cdf(0, needed, target) <= epsilon * (1 + 1e-9)
    assert needed == 1 or stats.binom.cdf(0, needed - 1, target) > epsilon * (1 - 1e-9)


@given(st.integers(0, 200), SHARES, st.floats(0.01, 0.5))
def test_most_wrong_is_where_the_tail_passes_epsilon(trusted: int, target: float, epsilon: float) -> None:
    found = most_wrong(trusted, target, epsilon)
    assert found == -1 or stats.binom.cdf(found, trusted, target) <= epsilon * (1 + 1e-9)
    assert stats.binom.cdf(found + 1, trusted, target) > epsilon * (1 - 1e-9)


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores uniform in [0, 1], each wrong with the probability of its score."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, random.random(n) < scores


@settings(max_examples=settings().max_examples // 5)
@given(st.integers(0, 50))
def test_everything_accepted_passes_the_exact_test_on_questions_that_were_not_set_aside(seed: int) -> None:
    scores, wrong = drawn(400, seed)
    try:
        found = guaranteed_threshold(scores, wrong, 0.3, seed=seed)
    except PromiseRefused:
        return
    assert (found.n, found.tested, found.threshold) == (400, 320, found.accepted[-1])
    assert list(found.accepted) == sorted(set(found.accepted))
    assert found.p == pytest.approx(stats.binomtest(found.wrong, found.trusted, 0.3, "less").pvalue)
    assert found.p <= EPSILON
    assert found.wrong <= most_wrong(found.trusted, 0.3, EPSILON)
    assert found.trusted <= (scores <= found.threshold).sum()


def test_the_promise_holds_where_the_truth_is_known() -> None:
    """P(wrong | score <= t) = t / 2 here: the promise of 0.3 is broken above t = 0.6."""
    made = [promised(*drawn(400, seed), 0.3, seed=seed) for seed in range(200)]
    broken = sum(found is not None and found.threshold > 0.6 for found in made)
    assert broken <= stats.binom.ppf(0.999, 200, EPSILON)
    assert made.count(None) < 20


def test_the_sequence_rises_through_the_scores() -> None:
    scores, wrong = drawn(100)
    steps = sequence(scores, wrong, 300, 0.3)
    assert (np.diff(steps) > 0).all()
    assert set(steps.tolist()) <= set(scores.tolist())
    assert steps[-1] == scores.max()


@given(st.integers(0, 50), st.floats(0, 1))
def test_labels_of_tested_questions_have_no_part_in_the_sequence(seed: int, share: float) -> None:
    """They only say where it ends: of two drawings of them, one accepts the first thresholds of what the other does."""
    scores, wrong = drawn(300, seed)
    aside = np.random.default_rng(seed).permutation(300)[: round(SPLIT * 300)]
    others = np.random.default_rng(seed + 1).random(300) < share * scores
    others[aside] = wrong[aside]
    one, other = (_accepted(promised(scores, labels, 0.3, seed=seed)) for labels in (wrong, others))
    common = min(len(one), len(other))
    assert one[:common] == other[:common]
    all_right = np.where(np.isin(np.arange(300), aside), wrong, False)
    steps = sequence(scores[aside], wrong[aside], 300 - len(aside), 0.3).tolist()
    assert _accepted(promised(scores, all_right, 0.3, seed=seed)) == tuple(steps)


def _accepted(found: Guarantee | None) -> tuple[float, ...]:
    return () if found is None else found.accepted


def test_what_could_not_be_measured_is_never_trusted() -> None:
    scores = np.full(200, np.inf)
    scores[:100] = np.linspace(0, 1, 100)
    wrong = np.isinf(scores)
    assert guaranteed_threshold(scores, wrong, 0.1).threshold <= 1
    with refused(PromiseRefused):
        guaranteed_threshold(np.full(200, np.inf), wrong, 0.1)


def test_too_few_questions_are_refused_with_the_number_that_would_do() -> None:
    scores, wrong = np.linspace(0, 1, 20), np.zeros(20, dtype=bool)
    with refused(PromiseRefused):
        guaranteed_threshold(scores, wrong, 0.1)
    # At least 22 tested ones, and a fifth is set aside.
    needed = questions_needed(scores, wrong, 0.1)
    assert needed is not None
    assert needed >= 28


def test_the_number_needed_does() -> None:
    scores, wrong = drawn(150)
    needed = questions_needed(scores, wrong, 0.2)
    assert needed is not None
    refused = [promised(*drawn(needed, seed), 0.2, seed=seed) for seed in range(50)].count(None)
    assert refused <= 20  # aimed at a fifth; the number is an estimate from 150 questions


def test_a_signal_that_says_nothing_about_a_weak_model_is_refused() -> None:
    random = np.random.default_rng(0)
    scores, wrong = random.random(500), random.random(500) < 0.6
    with refused(PromiseRefused):
        guaranteed_threshold(scores, wrong, 0.1)
    assert questions_needed(scores, wrong, 0.1) is None


def test_input_that_makes_no_sense() -> None:
    with refused(InvalidInput):
        guaranteed_threshold([1.0, 2.0], [True], 0.1)
    with refused(InvalidInput):
        guaranteed_threshold([1.0, float("nan")], [True, False], 0.1)
    with refused(InvalidSetting):
        guaranteed_threshold([1.0, 2.0], [True, False], 1.0)
    with refused(InvalidSetting):
        guaranteed_threshold([1.0, 2.0], [True, False], 0.5, 0.0)

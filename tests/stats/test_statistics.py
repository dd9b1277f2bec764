"""Statistics against scipy, closed forms and definitions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.stats.probabilities import fit_isotonic
from gnothi.stats.statistics import (
    Floats,
    Mask,
    auroc,
    auroc_difference,
    auroc_interval,
    crossfit,
    crossfit_probabilities,
    ece,
    ece_interval,
    folds_of,
    holm,
    mean,
    mean_interval,
    paired_test,
    reliability,
    risk_coverage,
    wilson_interval,
)

SCORES = st.lists(st.tuples(st.integers(-5, 5) | st.floats(allow_nan=False), st.booleans()), max_size=30)


def test_mean_interval_is_scipys() -> None:
    values = np.random.default_rng(1).beta(0.4, 0.6, 300)
    ours = mean_interval(values, resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2))
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=2e-3)


def test_mean_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered = 0
    for repetition in range(400):
        interval = mean_interval(random.random(100) < 0.3, resamples=400, seed=repetition)
        assert interval is not None
        covered += interval.low <= 0.3 <= interval.high
    assert 0.90 <= covered / 400 <= 0.98


def test_mean_interval_without_spread() -> None:
    assert mean_interval([]) is None
    assert mean_interval([1.0]) is None
    assert mean_interval([0.5, 0.5]) == (0.5, 0.5)
    assert mean_interval([1.0] * 20) == wilson_interval(20, 20)
    low, high = mean_interval([0.0] * 20) or (9, 9)
    assert low == pytest.approx(0, abs=1e-12)
    assert 0.1 < high < 0.2


def test_mean_interval_in_chunks_is_the_same_kind_of_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(50)
    whole = mean_interval(values)
    monkeypatch.setattr("gnothi.stats.statistics._CHUNK", 64)
    assert mean_interval(values) == pytest.approx(whole, abs=0.03)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_paired_test_of_shares_is_mcnemars(pairs: list[tuple[bool, bool]]) -> None:
    first, second = map(list, zip(*pairs, strict=True))
    found = paired_test(first, second)
    only_first = sum(a and not b for a, b in pairs)
    only_second = sum(b and not a for a, b in pairs)
    n = only_first + only_second
    tail = sum(stats.binom.pmf(k, n, 0.5) for k in range(min(only_first, only_second) + 1))
    assert found.p == pytest.approx(min(1.0, 2 * tail))
    assert found.difference == pytest.approx((only_first - only_second) / len(pairs))


def test_paired_test_of_graded_values_is_the_exhaustive_one() -> None:
    random = np.random.default_rng(4)
    first, second = random.random(12), random.random(12) - 0.15
    differences = first - second
    sums = np.array(list(product([-1, 1], repeat=12))) @ differences
    exact = (np.abs(sums) >= abs(differences.sum()) - 1e-12).mean()
    found = paired_test(first, second)
    assert found.test == "paired permutation"
    assert found.p == pytest.approx(exact, abs=0.01)
    scipys = stats.permutation_test((first, second), lambda x, y: np.mean(x - y), permutation_type="samples")
    assert found.p == pytest.approx(scipys.pvalue, abs=0.01)


def test_paired_test_is_symmetric_and_finds_no_difference_in_equals() -> None:
    random = np.random.default_rng(5)
    first, second = random.random(40), random.random(40)
    there, back = paired_test(first, second), paired_test(second, first)
    assert there.p == back.p
    assert there.difference == -back.difference
    assert paired_test(first, first) == (40, 0.0, None, 1.0, "mcnemar exact")


def test_paired_test_wants_pairs() -> None:
    with pytest.raises(ValueError, match="two equal"):
        paired_test([1, 2], [1])
    with pytest.raises(ValueError, match="at least one"):
        paired_test([], [])


@given(SCORES)
def test_auroc_is_the_share_of_pairs_in_order(items: list[tuple[float, bool]]) -> None:
    scores, positive = [score for score, _ in items], [label for _, label in items]
    pairs = [(a, b) for a, is_a in items if is_a for b, is_b in items if not is_b]
    expected = mean((a > b) + (a == b) / 2 for a, b in pairs)
    found = auroc(scores, positive)
    assert found == (None if expected is None else pytest.approx(expected))
    if found is not None:
        assert auroc([-score for score in scores], positive) == pytest.approx(1 - found)
        assert found == pytest.approx(
            stats.mannwhitneyu([s for s, y in items if y], [s for s, y in items if not y]).statistic / len(pairs)
        )


@given(SCORES)
def test_auroc_interval_holds_the_auroc(items: list[tuple[float, bool]]) -> None:
    scores, positive = [score for score, _ in items], [label for _, label in items]
    interval, area = auroc_interval(scores, positive), auroc(scores, positive)
    if interval is None:
        assert min(sum(positive), len(positive) - sum(positive)) < 2
    else:
        assert area is not None
        assert 0 <= interval.low <= area + 1e-9
        assert area - 1e-9 <= interval.high <= 1


def test_auroc_interval_is_the_bootstraps() -> None:
    random = np.random.default_rng(6)
    positive = random.random(400) < 0.4
    scores = random.normal(positive * 1.2)
    ours = auroc_interval(scores, positive)
    picks = random.integers(0, 400, (2000, 400))
    areas = [auroc(scores[pick], positive[pick]) for pick in picks]
    assert ours == pytest.approx(tuple(np.quantile(np.array(areas, dtype=float), [0.025, 0.975])), abs=0.01)


def test_auroc_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="not a number"):
        auroc([float("nan"), 1.0], [True, False])
    with pytest.raises(ValueError, match="two equal"):
        auroc([1.0], [True, False])


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), max_size=40))
def test_risk_coverage_is_its_definition(items: list[tuple[float, bool]]) -> None:
    coverage, risk = risk_coverage([u for u, _ in items], [w for _, w in items])
    limits = sorted({u for u, _ in items})
    assert len(coverage) == len(limits)
    for limit, share, wrong in zip(limits, coverage, risk, strict=True):
        accepted = [w for u, w in items if u <= limit]
        assert share == pytest.approx(len(accepted) / len(items))
        assert wrong == pytest.approx(sum(accepted) / len(accepted))


def test_ece_in_closed_form() -> None:
    assert ece([], []) is None
    assert ece([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0]) == 0
    assert ece([1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1]) == 1
    assert ece([0.95, 0.95, 0.25, 0.25], [1, 0, 0, 0]) == pytest.approx(0.5 * 0.45 + 0.5 * 0.25)
    assert [bin.n for bin in reliability([0.0, 0.05, 0.99, 1.0], [0, 0, 1, 1])] == [2, 2]
    with pytest.raises(ValueError, match="probabilities"):
        ece([1.2], [1])
    with pytest.raises(ValueError, match="two equal"):
        ece([0.2], [1, 0])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50), st.integers(1, 20))
def test_bins_hold_everything_once(items: list[tuple[float, bool]], bins: int) -> None:
    found = reliability([p for p, _ in items], [y for _, y in items], bins)
    assert sum(bin.n for bin in found) == len(items)
    assert sum(bin.n * bin.predicted for bin in found) == pytest.approx(sum(p for p, _ in items))
    assert sum(bin.n * bin.observed for bin in found) == pytest.approx(sum(y for _, y in items))


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


Curve = Callable[[Floats], tuple[Floats, Floats]]
CURVES: dict[str, tuple[float, Curve]] = {  # the true error, and what is predicted and true for a uniform number
    "perfect": (0.0, lambda u: (u, u)),
    "perfect and mostly sure": (0.0, lambda u: (u**3, u**3)),
    "one value, nearly right": (0.02, lambda u: (np.full(len(u), 0.4), np.full(len(u), 0.42))),
    "shifted": (0.1, lambda u: (u * 0.8, u * 0.8 + 0.1)),
    "overconfident": (0.1, lambda u: (u, 0.5 + 0.6 * (u - 0.5))),
    "wrong in one bin": (0.035, lambda u: (u, np.where(u > 0.9, 0.6, u))),
}


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("curve", CURVES)
def test_the_interval_of_the_calibration_error_covers_the_true_one(curve: str, n: int) -> None:
    true, shape = CURVES[curve]
    random, held = np.random.default_rng(1), 0
    for _ in range(100):
        predicted, chance = shape(random.random(n))
        interval = ece_interval(predicted, random.random(n) < chance, resamples=300)
        assert interval is not None
        held += interval.low <= true + 1e-3 and true <= interval.high
    assert held >= 83  # below which, with a coverage of .90, one of a hundred such samples falls


def test_the_interval_of_the_calibration_error_narrows_and_excludes_zero_where_it_can() -> None:
    random = np.random.default_rng(0)
    found = []
    for n in (100, 1000, 10_000):
        predicted = random.random(n) * 0.8
        found.append(ece_interval(predicted, random.random(n) < predicted + 0.1))
    few, more, many = (interval for interval in found if interval is not None)
    assert few.high - few.low > more.high - more.low > many.high - many.low
    assert many.low > 0.08
    assert many.high < 0.12
    surely = ece_interval([0.9] * 50, [0] * 50)
    assert surely is not None
    assert surely.low > 0.7
    assert ece_interval([0.5], [1]) is None
    one = ece_interval([0.5, 0.5], [1, 0])
    assert one is not None
    assert one.low == 0 < one.high


# --- many tests ----------------------------------------------------------------------------------------------------

P_VALUES = st.lists(st.floats(0, 1), max_size=8)


def test_holm_by_hand() -> None:
    """Holm's steps: 0.01 x 4, 0.02 x 3, 0.03 x 2 (not below its predecessor), 0.5 x 1."""
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([]).tolist() == []
    assert holm([0.7, 0.9]).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"p-values in \[0, 1\]"):
        holm([1.2])


@given(P_VALUES)
def test_holm_is_the_closed_bonferroni_test(p: list[float]) -> None:
    """The definition by closed testing: the largest Bonferroni-corrected minimum of all subsets that hold the hypothesis."""
    subsets = [chosen for chosen in product((False, True), repeat=len(p)) if any(chosen)]
    expected = [
        max(
            min(1.0, sum(chosen) * min(value for value, held in zip(p, chosen, strict=True) if held))
            for chosen in subsets
            if chosen[place]
        )
        for place in range(len(p))
    ]
    assert holm(p) == pytest.approx(expected)


def test_holm_is_statsmodels_where_it_is_installed() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    p = np.random.default_rng(1).random(20) ** 3
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])


def test_paired_auroc_is_delongs() -> None:
    """Against the definition: placements by pairs, and the covariance of the two scores' placements."""
    random = np.random.default_rng(5)
    y = random.random(60) < 0.4
    a, b = y + random.normal(size=60), np.round(y + random.normal(size=60), 1)

    def wins(x: np.ndarray) -> np.ndarray:
        return np.asarray((x[y][:, None] > x[~y]) + 0.5 * (x[y][:, None] == x[~y]))

    tables = wins(a), wins(b)
    s10, s01 = (np.cov([table.mean(axis=axis) for table in tables]) for axis in (1, 0))
    contrast = np.array([1.0, -1.0])
    variance = contrast @ (s10 / y.sum() + s01 / (~y).sum()) @ contrast
    found = auroc_difference(a, b, y)
    assert found is not None
    assert found.interval is not None
    assert found.difference == pytest.approx(tables[0].mean() - tables[1].mean())
    assert found.interval.high - found.difference == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-5)
    same = auroc_difference(a, 2 * a, y)
    assert same is not None
    assert (same.difference, same.p, same.interval) == (0.0, 1.0, None)
    assert auroc_difference(a[:3], b[:3], np.array([True, False, False])) is None

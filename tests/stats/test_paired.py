"""Paired tests against scipy, closed forms and definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.stats.paired import holm, paired_test
from tests.messages import refused


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
    assert found.test == "paired permutation test"
    assert found.p == pytest.approx(exact, abs=0.01)
    scipys = stats.permutation_test((first, second), lambda x, y: np.mean(x - y), permutation_type="samples")
    assert found.p == pytest.approx(scipys.pvalue, abs=0.01)


def test_paired_test_is_symmetric_and_finds_no_difference_in_equals() -> None:
    random = np.random.default_rng(5)
    first, second = random.random(40), random.random(40)
    there, back = paired_test(first, second), paired_test(second, first)
    assert there.p == back.p
    assert there.difference == -back.difference
    assert paired_test(first, first) == (40, 0.0, None, 1.0, "exact McNemar test")
    assert [paired_test(*pair).interval for pair in (([0] * 20, [1] * 20), ([1] * 20, [0] * 20))] == [None, None]


def test_paired_test_wants_pairs() -> None:
    with refused(ValueError):
        paired_test([1, 2], [1])
    with refused(ValueError):
        paired_test([], [])


P_VALUES = st.lists(st.floats(0, 1), max_size=8)


def test_holm_by_hand() -> None:
    """Holm's steps: 0.01 x 4, 0.02 x 3, 0.03 x 2 (not below its predecessor), 0.5 x 1."""
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([]).tolist() == []
    assert holm([0.7, 0.9]).tolist() == [1.0, 1.0]
    with refused(ValueError):
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

"""Areas under the curve against scipy, the bootstrap and their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gnothi.stats.auroc import auroc, auroc_difference, auroc_interval, auroc_within, risk_coverage
from gnothi.stats.intervals import mean
from tests.messages import refused

SCORES = st.lists(st.tuples(st.integers(-5, 5) | st.floats(allow_nan=False), st.booleans()), max_size=30)


@settings(max_examples=settings().max_examples // 2)
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


@settings(max_examples=settings().max_examples // 3)
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


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from("abc")), max_size=30))
def test_auroc_within_is_the_share_of_pairs_of_one_group(items: list[tuple[int, bool, str]]) -> None:
    scores, positive = [score for score, _, _ in items], [label for _, label, _ in items]
    groups = [group for *_, group in items]
    pairs = [(a, b) for a, is_a, here in items if is_a for b, is_b, there in items if not is_b and here == there]
    expected = mean((a > b) + (a == b) / 2 for a, b in pairs)
    found = auroc_within(scores, positive, groups)
    assert found == (None if expected is None else pytest.approx(expected))
    assert auroc_within(scores, positive, ["one"] * len(items)) == (
        None if (whole := auroc(scores, positive)) is None else pytest.approx(whole)
    )


def test_what_tells_groups_alone_tells_nothing_within() -> None:
    scores, positive = [0.9] * 6 + [0.1] * 6, [True, True, True, True, False, False, True, True, False, False, False, False]
    assert (auroc(scores, positive) or 0) > 0.6
    assert auroc_within(scores, positive, ["hard"] * 6 + ["easy"] * 6) == 0.5


def test_auroc_refuses_what_is_not_a_number() -> None:
    with refused(ValueError):
        auroc([float("nan"), 1.0], [True, False])
    with refused(ValueError):
        auroc([1.0], [True, False])


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


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), max_size=40))
def test_risk_coverage_is_its_definition(items: list[tuple[float, bool]]) -> None:
    coverage, risk = risk_coverage([u for u, _ in items], [w for _, w in items])
    limits = sorted({u for u, _ in items})
    assert len(coverage) == len(limits)
    for limit, share, wrong in zip(limits, coverage, risk, strict=True):
        accepted = [w for u, w in items if u <= limit]
        assert share == pytest.approx(len(accepted) / len(items))
        assert wrong == pytest.approx(sum(accepted) / len(accepted))

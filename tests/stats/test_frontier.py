from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.stats.frontier import at, between, crossvalidate, frontier, gap_closed, oracle
from tests.messages import refused

ROWS = st.lists(
    st.tuples(st.one_of(st.floats(-5, 5), st.integers(0, 3).map(float), st.just(math.inf)), st.booleans(), st.booleans()),
    min_size=1,
    max_size=30,
)


def columns(rows: list[tuple[float, bool, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores, never, always = zip(*rows, strict=True)
    return np.array(scores), np.array(never, dtype=float), np.array(always, dtype=float)


def test_by_hand() -> None:
    # Sure and right; sure and wrong, where retrieval helps; unsure, where it helps; unsure, where it harms.
    found = frontier([1, 2, 3, 4], [1, 0, 0, 1], [1, 1, 1, 0])
    assert found.thresholds.tolist() == [-math.inf, 1.5, 2.5, 3.5, 4]
    assert found.retrieval_rate.tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert found.accuracy.tolist() == [0.75, 0.75, 0.5, 0.25, 0.5]
    assert found.best() == (1.5, 0.75, 0.75)  # as good as always, and cheaper
    assert found.best(price=0.5) == (4, 0, 0.5)  # utility .5 against .75 - .375
    assert oracle([1, 0, 0, 1], [1, 1, 1, 0]).tolist() == [1, 1, 1, 1]


def test_scores_that_could_not_be_measured_retrieve_at_every_threshold() -> None:
    found = frontier([1, math.inf], [1, 1], [0, 0])
    assert found.thresholds.tolist() == [-math.inf, 1]
    assert found.accuracy.tolist() == [0, 0.5]


@given(ROWS)
def test_each_point_is_what_its_threshold_gives(rows: list[tuple[float, bool, bool]]) -> None:
    scores, never, always = columns(rows)
    points = frontier(scores, never, always).points()
    for point in points:
        quality = [right_with if score > point.threshold else right_without for score, right_without, right_with in rows]
        assert point.accuracy == pytest.approx(np.mean(quality))
        assert point.retrieval_rate == pytest.approx(np.mean([score > point.threshold for score in scores]))
        retrieved, reached = at(point.threshold, scores, never, always)
        assert (point.accuracy, point.retrieval_rate) == pytest.approx((reached.mean(), retrieved.mean()))
    assert (points[0].retrieval_rate, points[0].accuracy) == pytest.approx((1, always.mean()))
    if np.isfinite(scores).all():
        assert (points[-1].retrieval_rate, points[-1].accuracy) == pytest.approx((0, never.mean()))
    assert len({point.retrieval_rate for point in points}) == len(points)


def test_neighbouring_floats_have_a_threshold_between_them() -> None:
    low, high = 1.0, math.nextafter(1.0, 2)
    assert between(np.array([low, high])).tolist() == [-math.inf, low, high]
    big = np.array([1.7e308, 1.75e308])
    assert np.isfinite(between(big)[1:]).all()


@pytest.mark.parametrize("columns", [([], [], []), ([1.0], [1.0, 0.0], [1.0]), ([float("nan")], [1.0], [1.0])])
def test_arrays_that_do_not_fit(columns: tuple[list[float], list[float], list[float]]) -> None:
    with refused(ValueError):
        frontier(*columns)


def noise(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.normal(size=n), (random.random(n) < 0.5).astype(float), (random.random(n) < 0.5).astype(float)


def test_a_question_is_judged_under_thresholds_that_its_own_labels_have_no_part_in() -> None:
    scores, never, always = noise()
    before = crossvalidate(scores, never, always)
    for question in range(0, len(scores), 6):
        changed_never, changed_always = never.copy(), always.copy()
        changed_never[question], changed_always[question] = 1 - never[question], 1 - always[question]
        after = crossvalidate(scores, changed_never, changed_always)
        assert after.retrieved[question] == before.retrieved[question]


def test_noise_gains_nothing_in_cross_validation_though_it_does_in_hindsight() -> None:
    scores, never, always = noise(400)
    ends = max(never.mean(), always.mean())
    assert frontier(scores, never, always).best().accuracy > ends + 0.01
    assert crossvalidate(scores, never, always).quality.mean() < ends + 0.01


def test_a_perfect_signal_closes_the_gap() -> None:
    _, never, always = noise(200)
    judged = crossvalidate((always > never).astype(float), never, always)
    closed = gap_closed(judged.quality, never, always)
    assert closed.share == pytest.approx(1)
    assert closed.interval == pytest.approx((1, 1))


def test_the_gap_by_hand() -> None:
    never, always = np.array([1.0, 1, 0, 0] * 25), np.array([0.0, 1, 1, 0] * 25)
    assert gap_closed(never, never, always).share == 0
    assert gap_closed(np.array([1.0, 1, 0.5, 0] * 25), never, always).share == pytest.approx(0.5)
    worse = gap_closed(np.array([0.0, 1, 0, 0] * 25), never, always)
    assert worse.share == pytest.approx(-1)
    assert gap_closed(never, never, never) == (None, None)  # the oracle has nothing to choose from


def test_too_few_questions_for_the_folds() -> None:
    with refused(ValueError):
        crossvalidate(np.zeros(2), [0, 1], [1, 0])

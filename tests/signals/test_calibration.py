import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.signals.calibration import balanced_threshold

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
    with pytest.raises(InvalidInput, match="expected right and wrong"):
        balanced_threshold([0.0, 1.0], wrong)


def test_one_score_for_all_is_the_threshold_itself() -> None:
    assert balanced_threshold([3.0, 3.0], [True, False]) == 3.0

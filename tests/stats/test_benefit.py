from __future__ import annotations

import numpy as np
import pytest

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.benefit import RIDGES, fit_benefit
from tests.messages import refused


def drawn(n: int = 2000, seed: int = 0) -> tuple[Floats, Mask, Mask, Floats]:
    """The first feature tells whether the answers differ, the second which is right then, the third nothing."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 3))
    differ = random.random(n) < 1 / (1 + np.exp(-2 * x[:, 0]))
    chance = 1 / (1 + np.exp(-2 * x[:, 1]))
    second = random.random(n) < chance
    both = random.random(n) < 0.7
    return x, np.where(differ, ~second, both), np.where(differ, second, both), chance


def test_chances_are_those_that_were_drawn_from() -> None:
    x, first, second, chance = drawn()
    fresh, one, other, _ = drawn(seed=1)
    found = fit_benefit(x, first, second)(fresh)
    helped, harmed = other & ~one, one & ~other
    for chances, happened in ((found.helped, helped), (found.harmed, harmed), (found.first, one), (found.second, other)):
        assert ((chances >= 0) & (chances <= 1)).all()
        for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 1)):  # calibrated: so often it happened
            these = (chances >= low) & (chances < high)
            if these.sum() > 50:
                assert chances[these].mean() == pytest.approx(happened[these].mean(), abs=0.08)
    assert np.corrcoef(fit_benefit(x, first, second).second(x), chance)[0, 1] > 0.95


def test_weights_stand_with_what_tells() -> None:
    x, first, second, _ = drawn()
    found = fit_benefit(x, first, second)
    assert found.differ.weights[0] > 1 > abs(found.differ.weights[2])
    assert found.second.weights[1] > 1 > abs(found.second.weights[0])


def test_what_tells_nothing_elsewhere_is_a_rate() -> None:
    random = np.random.default_rng(3)
    x, first, second = random.normal(size=(60, 30)), random.random(60) < 0.5, random.random(60) < 0.5
    found = fit_benefit(x, first, second)
    gain = found(random.normal(size=(500, 30))).gain
    assert np.abs(gain).max() < 0.6
    few = fit_benefit(x[:8], first[:8], second[:8])
    assert np.ptp(few(x).helped) == 0


def test_the_regressions_are_scikit_learns() -> None:
    """The same minimum as that of the library most would use."""
    sklearn = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    from gnothi.stats.logistic import fit_logistic

    x, first, second, _ = drawn(400)
    differ = first != second
    for ridge in RIDGES:
        ours = fit_logistic(x, differ, ridge)
        theirs = sklearn.LogisticRegression(C=1 / ridge, tol=1e-9).fit((x - ours.centre) / ours.scale, differ)
        assert ours.weights == pytest.approx(theirs.coef_[0], abs=1e-4)
        assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)


@pytest.mark.parametrize(
    ("x", "first", "second"),
    [
        (np.zeros((3, 1)), [True, False], [True, False]),
        (np.full((2, 1), np.nan), [True, False], [True, False]),
        (np.zeros((0, 1)), [], []),
        (np.zeros(2), [True, False], [True, False]),
    ],
)
def test_what_makes_no_sense_is_refused(x: Floats, first: Mask, second: Mask) -> None:
    with refused(InvalidInput):
        fit_benefit(x, first, second)

"""Advantages by hand, and what holds for every group."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.training.self_knowledge.advantage import AdvantageRule, EntropyWeighting, normalised, ranked

GROUPS = st.integers(2, 9).flatmap(
    lambda size: st.lists(st.lists(st.floats(-1, 1), min_size=size, max_size=size), min_size=1, max_size=4)
)


def test_by_hand() -> None:
    """Rewards 1, -1, -1, 1: mean 0, std 1; ranks 3.5, 1.5, 1.5, 3.5 of 4."""
    rewards = [[1.0, -1.0, -1.0, 1.0]]
    assert normalised(rewards).tolist() == [[1.0, -1.0, -1.0, 1.0]]
    assert ranked(rewards).tolist() == [[0.5, -0.5, -0.5, 0.5]]
    assert AdvantageRule(0.5, "none")(rewards).tolist() == [[0.75, -0.75, -0.75, 0.75]]


def test_ranks_by_hand() -> None:
    assert ranked([[0.1, 0.2, 0.3, 0.4]]).tolist() == [[-0.75, -0.25, 0.25, 0.75]]
    assert ranked([[3.0, 1.0, 2.0]]) == pytest.approx(np.array([[2 / 3, -2 / 3, 0.0]]))
    assert ranked([[0.0, 5.0, 5.0]]) == pytest.approx(np.array([[-2 / 3, 1 / 3, 1 / 3]]))


def test_entropy_by_hand() -> None:
    rewards, entropies = [[1.0, -1.0]], [[math.log(2), math.log(4)]]
    expected: dict[EntropyWeighting, list[float]] = {
        "none": [1.0, -1.0], "positive": [0.5, -1.0], "symmetric": [0.5, -0.25]
    }  # fmt: skip
    for weighting, advantages in expected.items():
        assert AdvantageRule(1.0, weighting)(rewards, entropies)[0] == pytest.approx(advantages)
    assert AdvantageRule(1.0, "symmetric", 2.0)(rewards, entropies)[0] == pytest.approx([0.25, -1 / 16])
    assert AdvantageRule(1.0, "symmetric", 0.0)(rewards)[0] == pytest.approx([1.0, -1.0])
    with pytest.raises(ValueError, match="needs the replies' entropies"):
        AdvantageRule(1.0, "positive")(rewards)


@given(GROUPS, st.floats(0, 0.9))
def test_every_group(rewards: list[list[float]], mix: float) -> None:
    rule = AdvantageRule(mix, "none")
    advantages = rule(rewards)
    assert advantages.sum(axis=1) == pytest.approx(0, abs=1e-6)
    for got, given_, alone in zip(advantages, rewards, (rule([group])[0] for group in rewards), strict=True):
        assert got == pytest.approx(alone)  # groups do not see each other
        for i, j in np.ndindex(len(given_), len(given_)):
            if given_[i] == given_[j]:
                assert got[i] == got[j]
            elif given_[i] > given_[j]:
                assert got[i] > got[j]
        if len(set(given_)) == 1:
            assert (got == 0).all()


@given(GROUPS)
def test_against_scipy(rewards: list[list[float]]) -> None:
    for group, got in zip(rewards, normalised(rewards), strict=True):
        if np.std(group) > 1e-6:
            assert got == pytest.approx(stats.zscore(group), abs=1e-6)


@given(GROUPS, st.floats(0, 3))
def test_entropy_keeps_signs_and_never_amplifies(rewards: list[list[float]], beta: float) -> None:
    entropies = np.abs(np.asarray(rewards)) * 5
    plain = AdvantageRule(0.5, "none")(rewards)
    for weighting in ("positive", "symmetric"):
        weighted = AdvantageRule(0.5, weighting, beta)(rewards, entropies)
        assert (np.abs(weighted) <= np.abs(plain)).all()
        assert (np.sign(weighted) * np.sign(plain) >= 0).all()
        if weighting == "positive":
            assert (weighted[plain <= 0] == plain[plain <= 0]).all()

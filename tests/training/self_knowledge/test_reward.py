"""The reward table by hand, and what the best rule under it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.training.self_knowledge.reward import (
    INDIFFERENT,
    NO,
    YES,
    AdvantageRule,
    Correctness,
    EntropyWeighting,
    Verdict,
    judge,
    normalised,
    ranked,
    reward,
)
from tests.messages import refused

CORRECT = Correctness()


@pytest.mark.parametrize(
    ("verdict", "acc", "worth"),
    [
        ("right", 1.0, 1.0), ("right", 0.75, 0.5), ("right", 0.5, 0.0), ("right", 0.0, -1.0),
        ("wrong", 1.0, -1.0), ("wrong", 0.0, -1.0),
        ("no", 1.0, -1.0), ("no", 0.25, 0.5), ("no", 0.0, 1.0),
        ("neither", 0.0, -1.0), ("neither", 1.0, -1.0)
    ]
)  # fmt: skip
def test_the_table(verdict: Verdict, acc: float, worth: float) -> None:
    assert reward(verdict, acc) == worth


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes, I know: Paris.", "right"),
        (" yes, i know. The answer is Paris", "right"),
        ("Yes I know Paris", "right"),
        ("Yes, I know - Lyon.", "wrong"),
        ("Yes, I know.", "wrong"),
        ("Yes, I knowingly say Paris.", "neither"),
        ("Yes. Paris.", "neither"),
        ("No, I don't know.", "no"),
        ("No, I don’t know. Paris?", "no"),
        ("no I do not know", "no"),
        ("No.", "neither"),
        ("Paris", "neither"),
        ("", "neither"),
    ],
)
def test_replies_are_told_apart(reply: str, verdict: Verdict) -> None:
    assert judge(reply, ("Paris",), (), CORRECT) == verdict


def test_what_training_teaches_is_understood() -> None:
    assert judge(YES.format(answer="J. R. Tolk"), ("J. R. Tolk",), (), Correctness("em")) == "right"
    assert judge(NO, ("x",), (), CORRECT) == "no"


def test_any_metric_and_choices() -> None:
    assert judge("Yes, I know: in Paris.", ("Paris",), (), CORRECT) == "right"
    assert judge("Yes, I know: in Paris.", ("Paris",), (), Correctness("em")) == "wrong"
    assert judge("Yes, I know: old Paris.", ("Paris",), (), Correctness("f1", 0.6)) == "right"
    assert judge("Yes, I know: old Paris.", ("Paris",), (), Correctness("f1", 0.7)) == "wrong"
    assert judge("Yes, I know: the paris!", ("Paris",), ("Paris", "Lyon"), Correctness("em")) == "right"


@given(st.floats(0, 1))
def test_yes_is_best_above_the_golden_ratio(acc: float) -> None:
    says_yes = acc * reward("right", acc) + (1 - acc) * reward("wrong", acc)
    says_no = reward("no", acc)
    if abs(acc - INDIFFERENT) > 1e-9:
        assert (says_yes > says_no) == (acc > INDIFFERENT)
    else:
        assert math.isclose(says_yes, says_no, abs_tol=1e-6)


def test_a_tabular_policy_learns_to_cross_there() -> None:
    """One probability of Yes per question, trained by sampled replies and these advantages alone: it ends at Yes for every
    question above (sqrt(5) - 1) / 2 and at No for every one below."""
    assert math.isclose(INDIFFERENT, 0.6180339887498949)
    random = np.random.default_rng(0)
    rates = np.array([0.0, 0.2, 0.4, 0.5, 0.55, 0.58, 0.66, 0.7, 0.8, 0.9, 1.0])
    logits = np.zeros_like(rates)
    rule = AdvantageRule(mix=1.0, entropy="none")
    group = 256
    for _ in range(600):
        p = 1 / (1 + np.exp(-logits))
        yes = random.random((len(rates), group)) < p[:, None]
        right = random.random((len(rates), group)) < rates[:, None]
        rewards = np.array(
            [
                [reward("no" if not y else "right" if r else "wrong", acc) for y, r in zip(said, told, strict=True)]
                for said, told, acc in zip(yes, right, rates, strict=True)
            ]
        )
        # The gradient of a reply's log-probability by the logit is 1 - p for Yes and -p for No.
        logits += 0.3 * (rule(rewards) * (yes - p[:, None])).mean(axis=1)
    assert ((logits > 0) == (rates > INDIFFERENT)).all()
    assert (1 / (1 + np.exp(-np.abs(logits))) > 0.9).all()


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
    with refused(ValueError):
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

"""When comparisons stop drawing, and how few samples a score needs that is compared with nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.calibration.comparisons import Comparisons, alone, effect_of, leads
from gnothi.calibration.stopping import ALLOWED
from gnothi.signals.stopping import Lead, groups
from gnothi.stats.arrays import Floats

COUNTS = groups(20)


def drawn(n: int, spread: float, seed: int = 0, prompts: int = 3) -> list[Floats]:
    """Scores of ``prompts`` that are drawn from N(0, 1), plus noise of ``spread`` / sqrt(k), and 1 / k more."""
    random = np.random.default_rng(seed)
    truth = random.standard_normal((n, prompts))
    noise = random.standard_normal((n, prompts, 2, 20)) * spread
    scores = np.stack([truth[..., None] + noise[..., :count].mean(axis=-1) + 1 / count for count in COUNTS], axis=-1)
    return list(scores)


def live(steps: tuple[Lead, ...], scores: Floats) -> tuple[int, int]:
    """Which prompt is least, as ``signals.drawing`` goes about it, and after how many samples; scores (prompts, groups)."""
    for place, step in enumerate(steps):
        least, second = sorted(scores[:, place])[:2]
        if second - least >= step.apart:
            return int(scores[:, place].argmin()), step.samples
    return int(scores[:, -1].argmin()), COUNTS[-1]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 3.0]), st.integers(2, 4))
def test_the_least_is_another_hardly_more_often_than_in_another_draw(seed: int, spread: float, prompts: int) -> None:
    scores = drawn(200, spread, seed, prompts)
    made = Comparisons.among(COUNTS, scores, range(200))
    steps = leads(made, np.ones(200, dtype=bool))
    if not steps:
        return
    told = effect_of(made, steps)
    assert told.samples < 1
    assert told.differ <= told.all_differ + ALLOWED
    found = [[live(steps, one[:, draw]) for draw in (0, 1)] for one in scores]
    assert told.samples == pytest.approx(np.mean([[samples / 20 for _, samples in pair] for pair in found]))
    other = [[int(one[:, 1 - draw, -1].argmin()) for draw in (0, 1)] for one in scores]
    assert told.differ == pytest.approx(np.mean(np.array(other) != np.array(found)[..., 0]))


def test_few_samples_do_where_scores_lie_apart_and_all_are_drawn_where_each_counts() -> None:
    sure, torn = (Comparisons.among(COUNTS, drawn(300, spread), range(300)) for spread in (0.02, 1.5))
    all_of_them = np.ones(300, dtype=bool)
    assert effect_of(sure, leads(sure, all_of_them)).samples < 0.3
    assert effect_of(torn, leads(torn, all_of_them)).samples > 0.3


def test_questions_that_are_not_searched_for_do_not_judge_a_rule() -> None:
    """Half of the comparisons are drawn alike, the other half by chance alone: fewer samples would do for one half."""
    easy, hard = drawn(150, 0.01, 1), drawn(150, 1.0, 2)
    made = Comparisons.among(COUNTS, easy + hard, range(300))
    searched = np.arange(300) >= 150
    of_hard = leads(made, searched)
    if of_hard:
        told = effect_of(made.of(searched), of_hard)
        assert told.differ <= told.all_differ + 2 * ALLOWED
    assert leads(made, ~searched)
    assert leads(made, np.zeros(300, dtype=bool)) == ()


def test_without_comparisons_there_is_no_rule() -> None:
    assert leads(Comparisons.among(COUNTS, [], []), np.ones(5, dtype=bool)) == ()


def test_prompts_that_all_say_nothing_are_never_apart() -> None:
    made = Comparisons.among(
        COUNTS, [np.full((2, 2, 4), math.inf), np.array([np.zeros((2, 4)), np.full((2, 4), math.inf)])], [0, 1]
    )
    assert (made.apart[0] < 0).all()
    assert (made.apart[1] == math.inf).all()


def test_alone_as_few_are_drawn_as_tell_wrong_answers_as_well_as_all() -> None:
    random = np.random.default_rng(0)
    wrong = random.random(400) < 0.4
    told = np.concatenate(drawn(400, 0.01, prompts=1)) * 0.01 + wrong[:, None, None]
    assert alone(COUNTS, told, wrong) == (4,)
    blind = told.copy()
    blind[:, :, :2] = random.standard_normal((400, 2, 2))
    assert alone(COUNTS, blind, wrong) == (12,)
    blind[:, :, 2] = random.standard_normal((400, 2))
    assert alone(COUNTS, blind, wrong) == ()
    assert alone(COUNTS, -told, wrong) == (4,)  # worse than chance, all samples tell nothing either
    assert alone(COUNTS, told, np.zeros(400, dtype=bool)) == ()  # nothing is wrong: it cannot be told

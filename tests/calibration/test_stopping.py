"""When to stop drawing: margins, the one number that they come to, and what is promised of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gnothi.calibration.choose import TOLERATED, Chosen, Sample, choose
from gnothi.calibration.stopping import ALLOWED, Margins, Paths, effect_of, margins
from gnothi.errors import PromiseRefused
from gnothi.signals.gate import decisive
from gnothi.signals.stopping import Stopping, groups
from gnothi.stats.arrays import Floats

COUNTS = groups(20)
scores = st.one_of(st.floats(-9, 9), st.integers(-3, 3).map(float), st.just(math.inf)).map(decisive)
distances = st.one_of(st.floats(0, 5), st.sampled_from([0.0, 1.0, math.inf]))


def drawn(n: int, seed: int = 0, spread: float = 1.0, each: int = 1) -> Sample:
    """Questions of ``each`` decisions. The score of k samples is what is true of a question, drawn from N(0, 1), plus noise of
    ``spread`` / sqrt(k), and 1 / k more; the answer from memory is the likelier wrong the higher the truth."""
    random = np.random.default_rng(seed)
    truth = random.standard_normal((n, each))
    noise = random.standard_normal((n, each, 2, 20)) * spread
    means = [truth[..., None] + noise[..., :count].mean(axis=-1) + 1 / count for count in COUNTS]
    question = np.repeat(np.arange(n), each)
    paths = Paths(COUNTS, np.vectorize(decisive)(np.stack(means, axis=-1).reshape(n * each, 2, len(COUNTS))), question)
    highest = truth.max(axis=1)
    never = (random.random(n) < stats.norm.cdf(1 - 2 * highest)).astype(float)
    return Sample(paths.highest(paths.scores[:, 0, -1]), never, (random.random(n) < 0.7).astype(float), paths)


def paths_of(sample: Sample) -> Paths:
    assert sample.paths is not None
    return sample.paths


def live(rule: Stopping, threshold: float, path: Floats) -> tuple[bool, int]:
    """Whether a gate trusts, as ``signals.gate`` goes about it, and after how many samples."""
    for place, step in enumerate(rule.steps):
        score = decisive(path[place] + step.moved)
        if not step.known < score <= step.searched:
            return bool(score <= threshold), step.samples
    return bool(path[-1] <= threshold), COUNTS[-1]


@given(
    st.lists(st.tuples(st.floats(-3, 3), distances, distances), min_size=3, max_size=3),
    st.lists(scores, min_size=4, max_size=4),
    st.one_of(st.floats(-9, 9), st.integers(-3, 3).map(float)),
)
def test_one_number_says_at_which_thresholds_the_rule_trusts(
    steps: list[tuple[float, float, float]], path: list[float], threshold: float
) -> None:
    """So trust rises with the threshold, which is what a choice and a promise of one rest on."""
    found, row = Margins(*zip(*steps, strict=True)), np.array([path])
    (lowest,) = found.effective(row).tolist()
    for at in {threshold, *(lowest + by for by in (-1e-3, 0.0, 1e-3) if math.isfinite(lowest))}:
        if 0 < abs(lowest - at) < 1e-6:  # a hair may lie between
            continue
        trusts, samples = live(found.at(at, COUNTS), at, row[0])
        assert trusts is bool(lowest <= at)
        (group,), (score,) = found.stopped(row, at)
        moved = [decisive(score + by) for score, (by, _, _) in zip(path, steps, strict=False)]
        edges = [at + by for _, below, above in steps for by in (-below, above)]
        if lowest != at and not any(abs(one - edge) < 1e-6 for one in moved for edge in edges):
            assert COUNTS[group] == samples
            assert bool(score <= at) is trusts


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 4.0]), st.sampled_from([1, 3]))
def test_a_rule_differs_from_another_draw_hardly_more_often_than_all_samples(seed: int, spread: float, each: int) -> None:
    sample = drawn(150, seed, spread, each)
    found = choose(sample, price=0.1)
    assert found.effect is not None or not np.isfinite(found.threshold)
    if found.effect is not None:
        assert found.effect.differ <= found.effect.all_differ + ALLOWED
        assert (found.effect.samples < 1) is (found.stopping is not None)
    whole = choose(Sample(sample.scores, sample.never, sample.always), price=0.1)
    assert found.worth is not None
    assert whole.worth is not None
    utility = [one.accuracy - 0.1 * one.retrieval_rate for one in (found.worth, whole.worth)]
    assert utility[0] >= utility[1] - TOLERATED - 1e-12


def test_few_samples_do_where_they_say_the_same_and_all_are_drawn_where_each_counts() -> None:
    sure, torn = (choose(drawn(400, 1, spread), price=0.1).effect for spread in (0.05, 2.0))
    assert sure is not None
    assert torn is not None
    assert sure.samples < 0.25
    assert torn.samples > 0.4


def test_on_other_questions_it_does_what_was_told() -> None:
    chosen, fresh = choose(drawn(400, 1, 0.5), price=0.1), drawn(4000, 2, 0.5)
    found = margins(paths_of(drawn(400, 1, 0.5)), chosen.threshold)
    assert found is not None
    told = effect_of(paths_of(fresh), found, chosen.threshold)
    assert told.samples < 0.6
    assert told.differ <= told.all_differ + 3 * ALLOWED


def test_thresholds_of_fewer_samples_lie_where_their_scores_do() -> None:
    chosen = choose(drawn(1000, 3, 0.2), price=0.1)
    assert chosen.stopping is not None
    for step in chosen.stopping.steps:
        assert step.moved == pytest.approx(1 / 20 - 1 / step.samples, abs=0.05)
        assert step.known <= chosen.threshold + 1e-8 <= step.searched + 1e-8


def test_scores_are_those_at_which_drawing_ends() -> None:
    sample = drawn(300, 4, 0.3)
    found = choose(sample, price=0.1)
    assert found.stopping is not None
    trusts = [live(found.stopping, found.threshold, path)[0] for path in paths_of(sample).scores[:, 0]]
    assert (found.scores <= found.threshold).tolist() == trusts
    assert found.trusted == sum(trusts)


def test_a_silent_draft_is_never_trusted() -> None:
    sample = drawn(200, 5, 0.3)
    paths_of(sample).scores[7] = sample.scores[7] = math.inf
    found = choose(sample, price=0.1)
    assert found.stopping is not None
    assert found.scores[7] == math.inf
    assert live(found.stopping, found.threshold, paths_of(sample).scores[7, 0]) == (False, 4)


def _promised(seed: int) -> Chosen | None:
    sample = drawn(300, seed, 0.5)
    try:
        return choose(Sample(sample.scores, sample.never, None, sample.paths), target_error=0.2, seed=seed)
    except PromiseRefused:
        return None


@pytest.mark.slow
def test_the_promise_holds_for_the_rule() -> None:
    """Of many calibrations, the share of wrong answers among all that the rule trusts exceeds what was promised no more often
    than was said."""
    fresh = drawn(2000, 10**6, 0.5)
    made = [one for seed in range(60) if (one := _promised(seed)) is not None]
    assert len(made) > 30
    assert sum(one.stopping is not None for one in made) > 15
    broken = 0
    for one in made:
        rule = one.stopping or Stopping()
        trusts = np.array([live(rule, one.threshold, path)[0] for path in paths_of(fresh).scores[:, 0]])
        broken += fresh.wrong[trusts].mean() > 0.2
    assert broken <= stats.binom.ppf(0.999, len(made), 0.1)


def test_tested_questions_have_no_part_in_a_promised_rule() -> None:
    sample = drawn(300, 6, 0.5)
    one = choose(Sample(sample.scores, sample.never, None, sample.paths), target_error=0.3)
    aside = np.zeros(300, dtype=bool)
    aside[np.random.default_rng(0).permutation(300)[:60]] = True
    never = np.where(aside, sample.never, 1.0)
    other = choose(Sample(sample.scores, never, None, sample.paths), target_error=0.3)
    assert one.stopping is not None
    assert other.stopping is not None
    assert [step.moved for step in one.stopping.steps] == [step.moved for step in other.stopping.steps]
    widths = [[step.searched - step.known for step in each.stopping.steps] for each in (one, other) if each.stopping]
    assert widths[0] == pytest.approx(widths[1])

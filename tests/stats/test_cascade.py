"""None"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gnothi.errors import InvalidInput, PromiseRefused
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.cascade import Cascade, fit_cascade, promise
from tests.messages import refused


@cache
def drawn(n: int = 1500, seed: int = 0) -> tuple[Floats, Mask, Mask]:
    """Feature 0, known first, tells whether the first answer is right; feature 1, after the search, whether the second is."""
    random = np.random.default_rng(seed)
    first, second = random.random(n) < 0.6, random.random(n) < 0.6
    return np.column_stack([random.normal(size=n) - 4 * first, random.normal(size=n) + 4 * second]), first, second


def worth(cascade: Cascade, x: Floats, first: Mask, second: Mask) -> tuple[float, float]:
    """Right answers and searches, as shares."""
    found = cascade(x)
    return float(np.where(found.second, second, first).mean()), float((found.last == len(cascade.steps) - 1).mean())


@cache
def learnt(price: float, wrong: float = 0.0) -> Cascade:
    return fit_cascade(*drawn(), [("draft", [0], 0.0), ("search", [1], price)], wrong)


def test_it_searches_where_that_pays_and_disbelieves_what_misleads() -> None:
    fresh = drawn(seed=1)
    accuracy, searches = worth(learnt(0.05), *fresh)
    _, first, second = fresh
    assert accuracy > np.maximum(first, second).mean() - 0.03
    assert (~first).mean() - 0.03 < searches < (~first).mean() + 0.15  # hardly where the first is right


def test_a_dearer_search_is_rarer_until_there_is_none() -> None:
    fresh = drawn(seed=1)
    shares = [worth(learnt(price), *fresh)[1] for price in (0.01, 0.3, 0.9)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.3
    assert shares[-1] < 0.02


def test_a_stage_that_costs_nothing_is_no_place_to_stop() -> None:
    (only,) = learnt(0.0).steps
    assert (only.name, only.columns, only.needed) == ("search", (0, 1), 0)
    three = fit_cascade(*drawn(), [("question", [], 0.0), ("draft", [0], 0.0), ("search", [1], 0.2)])
    assert [step.name for step in three.steps] == ["draft", "search"]


def test_stages_that_are_not_reached_are_not_looked_at() -> None:
    cascade, (x, *_) = learnt(0.3), drawn(seed=1)
    found = cascade(x)
    stopped = found.last == 0
    assert 0 < stopped.sum() < len(x)
    other = x.copy()
    other[stopped, 1] = 99.0
    assert (cascade(other).second == found.second).all()
    assert (cascade(other).right == found.right).all()


def test_where_both_are_doubtful_nothing_is_said() -> None:
    x, first, second = drawn(seed=1)
    cascade = learnt(0.05, wrong=4.0)
    found = cascade(x)
    right = np.where(found.second, second, first)
    assert cascade.sure_enough == pytest.approx(0.8)
    assert 0.05 < (~found.answered).mean() < 0.4
    assert right[found.answered].mean() > 0.9 > 0.8 > right[~found.answered].mean()
    assert cascade.steps[0].needed == pytest.approx(0.01)  # a change from wrong to right is worth 5
    assert learnt(0.05)(x).answered.all()


def test_limits_on_doubt_and_harm() -> None:
    (x, *_), cascade = drawn(seed=1), learnt(0.05)
    free = cascade(x)
    assert free.answered.all()
    strict = replace(cascade, harm=0.02, doubt=0.1)(x)
    assert (strict.second <= free.second).all()
    assert 0 < strict.second.sum() < free.second.sum()
    assert free.harmed[strict.second].max() <= 0.02
    assert (strict.right[strict.answered] >= 0.9).all()
    assert (strict.last == free.last).all()  # only the last step minds the harm


def test_what_is_paid_for_at_the_end_counts_at_once() -> None:
    (only,) = fit_cascade(*drawn(), [("draft", [0], 0.0)], taking=0.2).steps
    assert only.needed == pytest.approx(0.2)


def test_later_stages_count_as_often_as_they_are_reached() -> None:
    three = fit_cascade(*drawn(), [("question", [], 0.0), ("draft", [0], 0.1), ("search", [1], 0.2)])
    question, draft, search = three.steps
    assert search.needed == 0
    assert draft.needed == pytest.approx(0.2)
    assert 0.1 + 0.2 * 0.3 < question.needed < 0.1 + 0.2 * 0.5  # about two in five go on


def test_without_stages_there_is_nothing_to_learn() -> None:
    with refused(InvalidInput):
        fit_cascade(*drawn(), [])


def drawn_of_cascade_promise(n: int, seed: int) -> tuple[Floats, Mask, Mask]:
    """Feature 0 tells, with noise, whether the first answer is right, feature 1 whether the second is."""
    random = np.random.default_rng(seed)
    first, second = random.random(n) < 0.6, random.random(n) < 0.6
    return np.column_stack([random.normal(size=n) - 1.5 * first, random.normal(size=n) + 1.5 * second]), first, second


@cache
def of_promises() -> Cascade:
    return fit_cascade(*drawn_of_cascade_promise(800, 0), [("draft", [0], 0.0), ("reading", [1], 0.05)])


def test_both_promises_hold_on_other_questions() -> None:
    found = promise(of_promises(), *drawn_of_cascade_promise(3000, 1), target_error=0.15, target_harm=0.1)
    assert found.harm is not None
    assert found.errors is not None
    assert (found.cascade.harm, found.cascade.doubt) == (found.harm.threshold, found.errors.threshold)
    assert found.harm.epsilon == found.errors.epsilon == 0.05
    x, first, second = drawn_of_cascade_promise(20_000, 2)
    free, decided = of_promises()(x), found.cascade(x)
    harmed = first & ~second
    assert harmed[free.second].mean() > harmed[decided.second].mean()
    assert harmed[decided.second].mean() <= 0.1
    wrong = ~np.where(decided.second, second, first)
    assert wrong[decided.answered].mean() <= 0.15 < wrong.mean()
    assert decided.answered.mean() > 0.2


@pytest.mark.parametrize("which", ["target_error", "target_harm"])
def test_a_promise_alone_has_all_questions_and_all_of_epsilon(which: str) -> None:
    found = promise(of_promises(), *drawn_of_cascade_promise(2000, 1), **{which: 0.2})  # type: ignore[arg-type]
    one = found.errors or found.harm
    assert one is not None
    assert one.epsilon == 0.1
    assert (found.errors is None) == (which == "target_harm")
    assert found.errors is None or found.errors.n == 2000


def test_promises_are_broken_in_at_most_epsilon_of_the_samples() -> None:
    x, first, second = drawn_of_cascade_promise(20_000, 2)
    harmed = first & ~second
    broken = tried = 0
    for seed in range(20):
        try:
            questions = drawn_of_cascade_promise(500, 100 + seed)
            found = promise(of_promises(), *questions, target_error=0.25, target_harm=0.2, seed=seed)
        except PromiseRefused:
            continue
        decided = found.cascade(x)
        wrong = ~np.where(decided.second, second, first)
        tried += 1
        broken += bool(wrong[decided.answered].mean() > 0.25 or harmed[decided.second].mean() > 0.2)
    assert tried > 10
    assert broken <= 7  # 0.1 of 20, and what chance adds to it in one of a thousand


def test_what_cannot_be_promised_is_refused() -> None:
    with refused(PromiseRefused):
        promise(of_promises(), *drawn_of_cascade_promise(60, 1), target_error=0.02)
    never = fit_cascade(*drawn_of_cascade_promise(400, 0), [("draft", [0], 0.0)], taking=0.99)
    with refused(InvalidInput):
        promise(never, *drawn_of_cascade_promise(100, 1), target_harm=0.1)

from __future__ import annotations

import numpy as np
import pytest

from gnothi.errors import InvalidInput, PromiseRefused
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.cascade import fit_cascade
from gnothi.stats.cascade_promise import promise, promised_cascade


def drawn(n: int, seed: int) -> tuple[Floats, Mask, Mask]:
    """Feature 0 tells, with noise, whether the first answer is right, feature 1 whether the second is."""
    random = np.random.default_rng(seed)
    first, second = random.random(n) < 0.6, random.random(n) < 0.6
    return np.column_stack([random.normal(size=n) - 1.5 * first, random.normal(size=n) + 1.5 * second]), first, second


CASCADE = fit_cascade(*drawn(800, 0), [("draft", [0], 0.0), ("reading", [1], 0.05)])


def test_both_promises_hold_on_other_questions() -> None:
    found = promise(CASCADE, *drawn(3000, 1), target_error=0.15, target_harm=0.1)
    assert found.harm is not None
    assert found.errors is not None
    assert (found.cascade.harm, found.cascade.doubt) == (found.harm.threshold, found.errors.threshold)
    assert found.harm.epsilon == found.errors.epsilon == 0.05
    x, first, second = drawn(20_000, 2)
    free, decided = CASCADE(x), found.cascade(x)
    harmed = first & ~second
    assert harmed[free.second].mean() > harmed[decided.second].mean()
    assert harmed[decided.second].mean() <= 0.1
    wrong = ~np.where(decided.second, second, first)
    assert wrong[decided.given].mean() <= 0.15 < wrong.mean()
    assert decided.given.mean() > 0.2


@pytest.mark.parametrize("which", ["target_error", "target_harm"])
def test_a_promise_alone_has_all_questions_and_all_of_epsilon(which: str) -> None:
    found = promise(CASCADE, *drawn(2000, 1), **{which: 0.2})  # type: ignore[arg-type]
    one = found.errors or found.harm
    assert one is not None
    assert one.epsilon == 0.1
    assert (found.errors is None) == (which == "target_harm")
    assert found.errors is None or found.errors.n == 2000


def test_promises_are_broken_in_at_most_epsilon_of_the_samples() -> None:
    x, first, second = drawn(20_000, 2)
    harmed = first & ~second
    broken = tried = 0
    for seed in range(20):
        found = promised_cascade(CASCADE, *drawn(500, 100 + seed), target_error=0.25, target_harm=0.2, seed=seed)
        if found is None:
            continue
        decided = found.cascade(x)
        wrong = ~np.where(decided.second, second, first)
        tried += 1
        broken += bool(wrong[decided.given].mean() > 0.25 or harmed[decided.second].mean() > 0.2)
    assert tried > 10
    assert broken <= 7  # 0.1 of 20, and what chance adds to it in one of a thousand


def test_what_cannot_be_promised_is_refused() -> None:
    with pytest.raises(PromiseRefused, match=r"cannot promise an error of at most 0\.02"):
        promise(CASCADE, *drawn(60, 1), target_error=0.02)
    never = fit_cascade(*drawn(400, 0), [("draft", [0], 0.0)], taking=0.99)
    with pytest.raises(InvalidInput, match="in none of which evidence is taken"):
        promise(never, *drawn(100, 1), target_harm=0.1)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.calibration.choose import Sample, choose
from gnothi.errors import InvalidInput, PromiseRefused
from gnothi.stats.frontier import at, frontier
from tests.messages import refused


def drawn(n: int = 400, seed: int = 0) -> Sample:
    """P(wrong from memory) is the score; retrieval is right in 70 %, whatever the score."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return Sample(scores, (random.random(n) > scores).astype(float), (random.random(n) < 0.7).astype(float))


def test_by_worth_alone_it_is_the_best_point_of_the_frontier() -> None:
    sample = drawn(2000)
    assert sample.always is not None
    for price in (0.0, 0.2):
        found = choose(sample, price=price)
        assert found.threshold == frontier(sample.scores, sample.never, sample.always).best(price).threshold
        # Trust where score < 0.3 + price: the expected gain of retrieving is below its price there.
        assert found.threshold == pytest.approx(0.3 + price, abs=0.12)
    assert found.guarantee is None
    assert found.worth is not None
    assert found.worth.never < found.worth.accuracy < found.worth.oracle


def test_by_guarantee_alone_no_answers_with_retrieval_are_needed() -> None:
    sample = drawn()
    found = choose(Sample(sample.scores, sample.never, None), target_error=0.3)
    assert found.guarantee is not None
    assert found.threshold == found.guarantee.threshold
    assert found.worth is None
    with refused(InvalidInput):
        choose(Sample(sample.scores, sample.never, None))


@settings(max_examples=15)
@given(st.integers(0, 30), st.floats(0, 0.5))
def test_with_both_it_is_the_most_useful_threshold_that_the_promise_holds_for(seed: int, price: float) -> None:
    sample = drawn(300, seed)
    assert sample.always is not None
    try:
        found = choose(sample, target_error=0.35, price=price)
    except PromiseRefused:
        return
    assert found.guarantee is not None
    assert found.threshold in found.guarantee.accepted

    def utility(threshold: float) -> float:
        assert sample.always is not None
        retrieved, quality = at(threshold, sample.scores, sample.never, sample.always)
        return float(quality.mean() - price * retrieved.mean())

    assert utility(found.threshold) == pytest.approx(max(map(utility, found.guarantee.accepted)))


def test_probabilities_come_close_to_those_that_outcomes_were_drawn_with() -> None:
    found = choose(drawn(3000), price=0.0).probabilities
    assert found is not None
    assert found.isotonic([0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.1)
    assert found.platt([0.5]) == pytest.approx([0.5], abs=0.05)
    assert found.isotonic_ece < 0.05
    assert found.isotonic_ece_interval is not None
    assert found.isotonic_ece_interval.low <= found.isotonic_ece


def test_no_probabilities_where_almost_all_are_right() -> None:
    random = np.random.default_rng(0)
    never = np.ones(100)
    never[:3] = 0
    assert choose(Sample(random.random(100), never, never)).probabilities is None


def test_too_few_questions() -> None:
    with refused(InvalidInput):
        choose(drawn(19))


def test_where_nothing_is_right_either_way_nothing_is_chosen() -> None:
    nothing = np.zeros(20)
    with refused(InvalidInput):
        choose(Sample(np.arange(20.0), nothing, nothing))


def test_where_memory_is_never_right_it_is_never_trusted() -> None:
    """A gate that knew where the search fails, too, would save it; yet what it trusted would be wrong."""
    always = np.repeat([0.0, 1.0], 20)
    found = choose(Sample(np.arange(40.0), np.zeros(40), always), price=0.1)
    assert (found.threshold, found.trusted) == (-np.inf, 0)
    assert found.worth is not None
    assert found.worth.best == "always"
    dear = choose(Sample(np.arange(40.0), np.zeros(40), always), price=0.6).worth
    assert dear is not None
    assert dear.best == "never"


def test_a_signal_that_says_nothing_searches_always() -> None:
    random = np.random.default_rng(1)
    never, always = (random.random(200) < 0.1).astype(float), (random.random(200) < 0.8).astype(float)
    found = choose(Sample(random.random(200), never, always))
    assert found.threshold == -np.inf
    assert found.worth is not None
    assert found.worth.best == "always"


def test_where_a_search_changes_nothing_memory_is_trusted() -> None:
    same = np.repeat([0.0, 1.0], 20)
    found = choose(Sample(np.arange(40.0), same, same))
    assert found.trusted == 40
    assert found.worth is not None
    assert found.worth.best == "never"


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0, 0.5), st.integers(20, 60))
def test_what_is_recommended_is_worth_most_where_it_was_not_chosen(seed: int, price: float, n: int) -> None:
    sample = drawn(n, seed)
    worth = choose(sample, price=price).worth
    assert worth is not None
    utilities = {
        "gate": worth.accuracy - price * worth.retrieval_rate,
        "always": worth.always - price,
        "never": worth.never,
    }
    assert utilities[worth.best] == pytest.approx(max(utilities.values()))

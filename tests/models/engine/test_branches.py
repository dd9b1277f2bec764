from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gnothi.models.batched import Continue
from gnothi.models.engine.branches import regroup
from gnothi.models.rendering import Tagged
from gnothi.models.transformers import TransformersBackend
from gnothi.testing.conformance.language_model import PROMPTS
from gnothi.types import Decoding, Samples, StateSpec


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40))
def test_samples_stay_together_as_long_as_they_say_the_same(samples: list[tuple[int, int]]) -> None:
    branch, feed = (np.array(column) for column in zip(*samples, strict=True))
    order, after = regroup(branch, feed, 10)
    assert set(after) == set(range(len(order)))
    assert (order[after] == branch).all()
    assert len(order) == len(set(samples))
    for one, first in zip(samples, after, strict=True):
        for other, second in zip(samples, after, strict=True):
            assert (one == other) == (first == second)
    # A branch that goes on moves only when its place is beyond the new end.
    for parent in set(branch.tolist()):
        assert parent in np.flatnonzero(order == parent) or parent >= len(order)


def test_samples_that_say_the_same_cost_one_row(llama: Any, tokenizer: Any) -> None:
    backend = TransformersBackend(llama, tokenizer, Tagged(), name="tiny")
    # Nearly greedy: all of them follow the likeliest tokens.
    sure = Decoding(max_tokens=12, temperature=1e-3, seed=4)
    (alone,) = backend.run([Continue(PROMPTS[0], 1, Decoding(max_tokens=12), (StateSpec(),))])
    before = backend.statistics
    results = backend.run([Continue(PROMPTS[0], 20, sure, (StateSpec(),)), Continue(PROMPTS[0], 1, Decoding(max_tokens=12))])
    assert isinstance(alone, Samples)
    for result in results:
        assert isinstance(result, Samples)
        assert {one.text for one in result.generations} == {alone.generations[0].text}
        assert {one.tokens for one in result.generations} == {result.generations[0].tokens}
    after = backend.statistics
    rows, steps = after["fed_rows"] - before["fed_rows"], after["steps"] - before["steps"]
    assert steps >= 5
    # The greedy one and the samples are one row; at the end some wait for their state.
    assert rows <= steps + 1
    assert after["samples"] - before["samples"] >= 20 * (steps - 1)


def test_samples_part_and_are_what_they_would_be_alone(llama: Any, tokenizer: Any) -> None:
    backend = TransformersBackend(llama, tokenizer, Tagged(), name="tiny")
    warm = Decoding(max_tokens=25, temperature=0.6, top_k=20, seed=9)
    (together,) = backend.run([Continue(PROMPTS[1], 12, warm, (StateSpec(),))])
    assert isinstance(together, Samples)
    texts = [one.text for one in together.generations]
    assert 1 < len({text[:4] for text in texts}) < 12
    backend._engine.limits.rows = 1
    (one_by_one,) = backend.run([Continue(PROMPTS[1], 12, warm, (StateSpec(),))])
    assert isinstance(one_by_one, Samples)
    assert [one.text for one in one_by_one.generations] == texts
    np.testing.assert_allclose(one_by_one.states[0], together.states[0], atol=1e-4)

"""Where kills of one piece of work may fall."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tests.messages import refused
from tests.stopping import moments


@given(kills=st.integers(1, 10), more=st.integers(0, 100))
def test_every_kill_finds_the_work_unfinished(kills: int, more: int) -> None:
    steps = 3 * kills + more
    between = moments(steps, kills)
    assert len(between) == kills
    assert min(between) >= 1
    late = [counted + before for before, counted in enumerate(accumulate(between))]  # each kill before left one step more
    assert late[-1] < steps


def test_too_many_kills_are_told() -> None:
    with refused(AssertionError):
        moments(20, 8)

"""Waiting in a queue is not work."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.concurrency import Batcher, Inbox
from gnothi.waiting import queued, waited, working

moments = st.floats(0, 100, allow_nan=False)
calls = st.lists(st.tuples(moments, moments, moments).map(lambda three: tuple(sorted(three))), max_size=8)


def test_the_time_between_asking_and_beginning_is_a_queue() -> None:
    assert queued([(0.0, 3.0, 5.0)]) == 3.0
    assert queued([(0.0, 3.0, 5.0), (4.0, 5.0, 6.0)]) == 3.0  # the second stood while the first was worked on
    assert queued([(0.0, 3.0, 5.0), (1.0, 4.0, 5.0)]) == 3.0  # both stood, once


@given(calls)
def test_queues_are_never_longer_than_the_time_there_was(found: list[tuple[float, float, float]]) -> None:
    longest = max((done for *_, done in found), default=0.0) - min((asked for asked, *_ in found), default=0.0)
    assert -1e-9 <= queued(found) <= longest + 1e-9
    assert queued([*found, (0.0, 0.0, 100.0)]) == pytest.approx(0.0)  # something was worked on all the time


async def test_what_waits_for_a_worker_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def work(inbox: Inbox[str, str]) -> None:
        nonlocal now
        now += 10.0  # busy with others
        for job in inbox.take():
            now += 2.0
            job.finish("done")

    with working() as seconds:
        batcher: Batcher[str, str] = Batcher(work)
        assert await batcher.submit("one") == "done"
        await batcher.aclose()
    assert seconds() == 2.0


async def test_a_worker_that_takes_more_than_it_has_room_for_says_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def work(inbox: Inbox[str, str]) -> None:
        nonlocal now
        for job in inbox.take():
            now += 7.0
            job.begin()
            now += 1.0
            job.finish("done")

    with working() as seconds:
        batcher: Batcher[str, str] = Batcher(work)
        await asyncio.gather(batcher.submit("one"))
        await batcher.aclose()
    assert seconds() == 1.0


def test_nobody_listens_outside() -> None:
    waited(0.0, None, 1.0)
    with working() as seconds:
        pass
    assert seconds() >= 0.0

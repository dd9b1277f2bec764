from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from gnothi.concurrency import Batcher, Inbox, Job, gather, hurried, in_batches
from tests.messages import refused
from tests.patience import PATIENCE


class Recorder:
    """Doubles numbers; remembers its batches; a negative number fails alone. Holds each batch until ``gate`` is open."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def __call__(self, batch: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(batch))
        self.started.set()
        assert self.gate.wait(PATIENCE)
        return [ValueError(str(number)) if number < 0 else 2 * number for number in batch]


async def test_gather_keeps_order_and_cancels_siblings() -> None:
    assert await gather(asyncio.sleep(0.01, 1), asyncio.sleep(0, 2)) == [1, 2]
    sibling = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            sibling.set()
            raise

    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await gather(slow(), failing())
    assert sibling.is_set()


async def test_everything_that_waits_while_the_worker_is_busy_makes_the_next_batch() -> None:
    work = Recorder()
    work.gate.clear()
    batcher = Batcher(in_batches(work))
    first = asyncio.create_task(batcher.submit(1))
    await asyncio.to_thread(work.started.wait)
    others = [asyncio.create_task(batcher.submit(number)) for number in range(2, 100)]
    await asyncio.sleep(0)
    work.gate.set()
    assert await gather(first, *others) == [2 * number for number in range(1, 100)]
    assert work.batches == [[1], list(range(2, 100))]
    await batcher.aclose()


async def test_a_failing_request_fails_alone() -> None:
    batcher = Batcher(in_batches(Recorder()))
    results = await asyncio.gather(*(batcher.submit(number) for number in (1, -1, 2)), return_exceptions=True)
    assert results[0] == 2
    assert results[2] == 4
    assert isinstance(results[1], ValueError)
    await batcher.aclose()


async def test_a_cancelled_request_never_reaches_the_worker_or_is_ignored() -> None:
    work = Recorder()
    work.gate.clear()
    batcher = Batcher(in_batches(work))
    running = asyncio.create_task(batcher.submit(1))
    await asyncio.to_thread(work.started.wait)
    waiting, kept = asyncio.create_task(batcher.submit(2)), asyncio.create_task(batcher.submit(3))
    await asyncio.sleep(0)
    waiting.cancel()
    running.cancel()
    await asyncio.sleep(0)
    work.gate.set()
    assert await kept == 6
    assert work.batches == [[1], [3]]
    await batcher.aclose()


async def test_an_escaping_exception_goes_to_the_taken_jobs_and_work_goes_on() -> None:
    calls: list[int] = []

    def work(inbox: Inbox[int, int]) -> None:
        jobs = inbox.take()
        calls.append(len(jobs))
        if len(calls) == 1:
            raise OSError("device lost")
        for job in jobs:
            job.finish(job.request)

    batcher = Batcher(work)
    with refused(OSError):
        await batcher.submit(1)
    assert await batcher.submit(2) == 2
    await batcher.aclose()


async def test_a_job_without_an_outcome_is_an_error_not_a_hang() -> None:
    def forgetful(inbox: Inbox[int, int]) -> None:
        inbox.take()

    batcher = Batcher(forgetful, name="forgetful")
    with refused(RuntimeError):
        await batcher.submit(1)
    await batcher.aclose()


async def test_a_worker_can_admit_newcomers() -> None:
    arrived = threading.Event()

    def work(inbox: Inbox[int, int]) -> None:
        first = inbox.take()
        arrived.set()
        newcomers: list[Job[int, int]] = []
        while not newcomers:
            newcomers = inbox.take()
        for job in [*first, *newcomers]:
            job.finish(len(first) + len(newcomers))

    batcher = Batcher(work)
    first = asyncio.create_task(batcher.submit(1))
    await asyncio.to_thread(arrived.wait)
    assert await gather(batcher.submit(2), first) == [2, 2]
    await batcher.aclose()


def test_one_batcher_serves_several_event_loops() -> None:
    batcher = Batcher(in_batches(Recorder()))
    assert asyncio.run(batcher.submit(1)) == 2
    assert asyncio.run(batcher.submit(2)) == 4
    asyncio.run(batcher.aclose())


async def test_closing_cancels_what_waits_and_refuses_more() -> None:
    work = Recorder()
    work.gate.clear()
    batcher = Batcher(in_batches(work))
    running = asyncio.create_task(batcher.submit(1))
    await asyncio.to_thread(work.started.wait)
    waiting = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    closing = asyncio.create_task(batcher.aclose())
    await asyncio.sleep(0)
    work.gate.set()
    await closing
    assert await running == 2
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with refused(RuntimeError):
        await batcher.submit(3)
    await batcher.aclose()


def test_what_is_asked_is_hurried_until_told_otherwise() -> None:
    inbox: Inbox[str, str] = Inbox()
    asked = [inbox.put("before")]
    with hurried() as calm:
        asked.append(inbox.put("first"))
        calm()
        asked.append(inbox.put("later"))
    assert [job.hurried for job in [*asked, inbox.put("after")]] == [False, True, False, False]

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from gnothi.concurrency import both, gather


async def value(result: int, wait: float = 0.0) -> int:
    await asyncio.sleep(wait)
    return result


async def fail(message: str) -> int:
    raise ValueError(message)


async def test_gather_keeps_the_order_of_its_arguments() -> None:
    assert await gather(value(1, 0.01), value(2), value(3)) == [1, 2, 3]


async def test_gather_of_nothing() -> None:
    assert await gather() == []


async def test_the_first_failure_is_raised_as_itself_and_cancels_the_others() -> None:
    cancelled = asyncio.Event()

    async def waiting() -> int:
        try:
            return await value(1, 60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(ValueError, match="nested"):
        await gather(waiting(), gather_of_a_failure())
    assert cancelled.is_set()


async def gather_of_a_failure() -> int:
    await asyncio.sleep(0)
    return (await gather(fail("nested"), value(1, 60)))[0]


async def test_a_future_may_be_gathered() -> None:
    future = asyncio.get_running_loop().create_future()
    future.set_result(5)
    assert await gather(future, value(1)) == [5, 1]


async def test_both_keeps_types_apart() -> None:
    async def text() -> str:
        return "a"

    assert await both(text(), value(2)) == ("a", 2)


async def test_cancelled_before_the_first_step_leaves_no_coroutine_unawaited() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task = asyncio.ensure_future(gather(value(1), value(2)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()
    assert not caught

"""Structured concurrency: gather that cancels siblings, and the Batcher that turns concurrent calls into batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


async def gather(*awaitables: Awaitable[T]) -> list[T]:
    """Await all, in order. The first failure cancels the others and is raised as itself, not inside an ExceptionGroup."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_coroutine(awaitable)) for awaitable in awaitables]
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


async def both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """``gather`` for two awaitables of different types."""
    results: list[Any] = await gather(cast("Awaitable[Any]", first), cast("Awaitable[Any]", second))
    return results[0], results[1]


def _coroutine(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    # A coroutine becomes a task itself: inside a wrapper that is cancelled before its first step it would never be awaited.
    if isinstance(awaitable, Coroutine):
        return awaitable

    async def wait() -> T:
        return await awaitable

    return wait()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first

"""Structured concurrency: gather that cancels siblings, and the Batcher that turns concurrent calls into batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(*awaitables: Awaitable[T]) -> list[T]:
    """Await all, in order. The first failure cancels the others and is raised as itself, not inside an ExceptionGroup."""

    async def run(awaitable: Awaitable[T]) -> T:
        return await awaitable

    try:
        async with asyncio.TaskGroup() as group:
            coroutines: list[Coroutine[Any, Any, T]] = [run(awaitable) for awaitable in awaitables]
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first

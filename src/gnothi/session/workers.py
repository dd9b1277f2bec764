"""Workers that answer questions for this process: processes of this machine, or actors on a cluster of Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from gnothi.runs.host import Ask, Open, R
from gnothi.runs.on_ray import actors
from gnothi.runs.pool import Pool, pool
from gnothi.runs.processes import processes
from gnothi.session.plan import Execution


def is_elsewhere(execution: Execution, count: int) -> bool:
    """Whether ``count`` workers are others than this process."""
    return execution.on is not None or count > 1


def where(execution: Execution, count: int) -> str:
    """In words, to follow what is opened; empty for this process."""
    several = f" in {count} processes" if count > 1 else ""
    return f" on {execution.on}{several}" if execution.on else several


@asynccontextmanager
async def workers(
    execution: Execution, count: int, opened: Open, ask: Ask[R], warn: Callable[[str], None]
) -> AsyncIterator[Pool[R]]:
    """``count`` of them where ``execution`` says. Raises what opening raises, MissingDependency, InvalidSetting, WorkerDied."""
    async with AsyncExitStack() as stack:
        if execution.on is not None:
            kind = await stack.enter_async_context(actors(execution.on, count, execution.gpus, opened, ask))
        else:
            kind = processes(count, opened, ask)
        yield await stack.enter_async_context(pool(kind, count, warn))

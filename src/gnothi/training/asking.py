"""Where training questions are asked: in this process, in several, or on a cluster of Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from gnothi.runs.on_ray import on_ray
from gnothi.runs.workers import workers
from gnothi.session.plan import Execution, Plan
from gnothi.training.collecting import Finding, Line, line_of
from gnothi.training.job import Sources
from gnothi.training.watch import SILENT
from gnothi.types import Question

Opening = Callable[[Sources], Awaitable[Finding]]
"""Opens what finds out about a question. Other processes call it, too, so it must be a function of a module, or a ``partial``
of one."""
Asking = Callable[[Question], Awaitable[Line]]


class _Open(dict[str, Finding]):
    """What is open in another process, and how many questions it gains from at a time, if it says."""

    under_way: int | None = None


@asynccontextmanager
async def asking(
    opening: Opening, sources: Sources, execution: Execution, missing: int
) -> AsyncIterator[tuple[Asking, int | None]]:
    """What asks one question, and how many it gains from at a time, if it says. ``missing`` questions need no more processes
    than that. Raises what opening raises."""
    plan, watch, on = sources.plan, sources.watch, execution.on
    count, opened = min(execution.workers, missing), partial(_opened, sources.plan, opening)
    if on is None and count == 1:
        find = await opening(sources)
        yield partial(line_of, "", find), sources.under_way
        return
    several = f" in {count} processes" if count > 1 else ""
    far: AbstractAsyncContextManager[Any]
    far = on_ray(on, count, execution.gpus, opened, line_of, watch.warn) if on else workers(count, opened, line_of)
    async with AsyncExitStack() as stack:
        with watch.waiting(f"opening model {plan.sources.model}{f' on {on}' if on else ''}{several} ..."):
            found: Any = await stack.enter_async_context(far)
        yield partial(found, ""), found.under_way


@asynccontextmanager
async def _opened(plan: Plan, opening: Opening) -> AsyncIterator[_Open]:
    async with AsyncExitStack() as stack:
        sources = Sources(plan, SILENT, stack)
        found = _Open({"": await opening(sources)})
        found.under_way = sources.under_way
        yield found

"""Where training questions are asked: in this process, in several, or on a cluster of Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from gnothi.session.plan import Execution, Plan
from gnothi.session.workers import is_elsewhere, where, workers
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
    plan, watch = sources.plan, sources.watch
    count = min(execution.workers, missing)
    if not is_elsewhere(execution, count):
        find = await opening(sources)
        yield partial(line_of, "", find), sources.under_way
        return
    several = workers(execution, count, partial(_opened, plan, opening), line_of, watch.warn)
    async with AsyncExitStack() as stack:
        with watch.waiting(f"opening model {plan.sources.model}{where(execution, count)} ..."):
            found = await stack.enter_async_context(several)
        yield partial(found, ""), found.under_way


@asynccontextmanager
async def _opened(plan: Plan, opening: Opening) -> AsyncIterator[_Open]:
    async with AsyncExitStack() as stack:
        sources = Sources(plan, SILENT, stack)
        found = _Open({"": await opening(sources)})
        found.under_way = sources.under_way
        yield found

"""One question, asked of what is opened for it alone, as ``gnothi ask`` does; ``gnothi.open`` keeps it open for more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gnothi.events import Listener
from gnothi.models.remote.budget import Budget, spending
from gnothi.session.asking import Result, ask_method
from gnothi.session.knowledge import uncalibrated
from gnothi.session.plan import Execution, Plan, Request, resolve, together
from gnothi.session.resources import opened
from gnothi.types import Question


def plan_of(request: Request, seed: int = 0) -> Plan:
    """The plan of a method that is to be asked. Raises as ``resolve`` and ``together``."""
    return replace(together(resolve(request)), execution=Execution(seed))


async def ask_once(
    plan: Plan, question: Question, budget: Budget, listeners: Sequence[Listener] = (), ready: Callable[[], None] = lambda: None
) -> tuple[Result, str | None]:
    """The answer, and a warning where the gate's threshold was chosen for other models. ``listeners`` hear of everything as it
    happens; ``ready`` is called when model and index are open. Raises what opening and asking raise."""
    with spending(budget):
        async with opened([plan]) as found:
            method, doubtful = found.method(plan.methods[0]), uncalibrated(plan, found)
            ready()
            return await ask_method(plan, found, method, question, listeners), doubtful

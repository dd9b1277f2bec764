"""A plan with questions, carried out into a run folder by a command: what is said before, while, and after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.cli.spending import spending

if TYPE_CHECKING:
    from gnothi.runs.rows import Row
    from gnothi.session.execute import Run
    from gnothi.session.plan import Plan

SOME_FAILED = 1
"""Exit code of a command that ended with questions that failed."""


@contextmanager
def carried_out(plan: Plan, sources: options.Sources, out: Path, as_json: bool) -> Iterator[tuple[Run, list[Row]]]:
    """The run, whose folder is held meanwhile, and all its rows. ``as_json``: standard output is for a program."""
    from gnothi.cli.progress import watching
    from gnothi.session.execute import budget_of, claimed, done, execute
    from gnothi.session.record import changed_since, record

    for line in plan.told:
        say(line)
    changed = changed_since(sources.repeated, record(plan), str(sources.config)) if sources.config else []
    for warning in (*changed, *plan.warnings):
        say(f"warning: {warning}")
    budget = budget_of(plan)
    with claimed(plan, out) as run, spending(budget, plan.remote, out, partial(done, [run]), err=as_json):
        with watching() as watch:
            (rows,) = asyncio.run(execute([run], watch, budget=budget))
        yield run, rows

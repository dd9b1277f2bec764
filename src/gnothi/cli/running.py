"""A plan with questions, carried out into a run folder by a command: what is said before, while, and after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gnothi.cli import options
from gnothi.cli.saying import say
from gnothi.cli.spending import spending

if TYPE_CHECKING:
    from gnothi.api.evaluate import Evaluation
    from gnothi.session.plan import Plan

SOME_FAILED = 1
"""Exit code of a command that ended with questions that failed."""


@contextmanager
def carried_out(plan: Plan, sources: options.Sources, out: Path, as_json: bool) -> Iterator[Evaluation]:
    """What comes of it, with progress told meanwhile, and costs at the end. ``as_json``: standard output is for a program."""
    from gnothi.api.evaluate import carry_out
    from gnothi.cli.progress import ProgressWatch
    from gnothi.session.execute import budget_of
    from gnothi.session.record import changed_since, record

    changed = changed_since(sources.repeated, record(plan), str(sources.config)) if sources.config else []
    for warning in changed:
        say(f"warning: {warning}")
    budget, watch = budget_of(plan), ProgressWatch()
    with spending(budget, plan.remote, out, lambda: watch.kept, err=as_json):
        with watch:
            evaluation = asyncio.run(carry_out(plan, out, watch, budget))
        yield evaluation

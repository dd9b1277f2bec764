"""Commands that ask many questions and go on where they were stopped: what is said meanwhile, what is kept when they are
stopped, and what models behind an API were paid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnothi.cli.saying import say
from gnothi.cli.signals import INTERRUPTED
from gnothi.errors import BudgetSpent

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget


def _finished() -> str:
    return "What is finished is"


@contextmanager
def stoppable(folder: Path, done: Callable[[], str] = _finished) -> Iterator[None]:
    """Where the user or a budget stops the block, say that what is ``done`` ("3 of 40 answers are") is kept in ``folder``."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"gnothi: interrupted. {done()} kept in {folder}. Run the same command again to resume.")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BudgetSpent as spent:
        raise BudgetSpent(f"{spent.message} {done()} kept in {folder}. Run the same command again to resume.") from None


@contextmanager
def spending(budget: Budget, remote: bool, folder: Path, done: Callable[[], str] = _finished, *, err: bool) -> Iterator[None]:
    """``stoppable``, with a budget that models opened inside share; at the end, say what those behind an API were paid
    (``remote``: there are some), on stderr if ``err``."""
    from gnothi.models.remote import budget as books

    with stoppable(folder, done), books.spending(budget):
        yield
    say_charges(budget if remote else None, err=err)


def say_charges(budget: Budget | None, *, err: bool) -> None:
    """What models behind an API said of themselves, and what they were paid, on stderr if ``err``; nothing where there are
    none."""
    if budget is None:
        return
    from gnothi.models.remote.description import remarks, warnings

    for line in remarks(budget.models):
        click.echo(line, err=err)
    click.echo(f"charged: {budget.describe()}", err=err)
    for warning in warnings(budget.models):
        say(f"warning: {warning}")


SOME_FAILED = 1
"""Exit code of a command that ended with questions that failed."""

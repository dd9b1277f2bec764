"""A plan carried out: every question answered with every method, kept row by row in a run folder, and summed up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from gnothi.errors import RunStopped
from gnothi.methods.planned import name_of
from gnothi.models.remote.budget import Budget, spending
from gnothi.report.summary import Summary, summarise
from gnothi.runs.folder import Pace, RunFolder, note
from gnothi.runs.pool import Pool
from gnothi.runs.rows import Row
from gnothi.runs.runner import CONCURRENCY, Answers, Outcome, Work, here, outcome, run
from gnothi.session.plan import Plan
from gnothi.session.progress import Progress
from gnothi.session.record import record
from gnothi.session.resources import Key, Methods, label, opened_methods
from gnothi.session.watch import SILENT, Watch
from gnothi.session.workers import is_elsewhere, where, workers
from gnothi.types import Question

READ = "read_tokens"
"""What a model that counts calls the tokens of prompts that it has read."""


@dataclass(frozen=True, slots=True)
class Run:
    """A plan with the folder that its answers go to; ``label`` tells runs of one piece of work apart. ``held``: its gate is
    kept shut or open on purpose."""

    plan: Plan
    folder: RunFolder
    label: str = ""
    held: bool = False

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Method and question of every answer that is still to come."""
        rows = self.folder.rows
        return [key for key in self.plan.keys if key not in rows or rows[key].failed]

    def summarise(self, rows: Sequence[Row]) -> Summary:
        """What the rows come to, also written into the folder."""
        summary = summarise(rows, self.plan.questions.dataset, self.plan.trusting)
        self.folder.write_summary(summary)
        return summary


@contextlib.contextmanager
def claimed(
    plan: Plan, out: Path, label: str = "", recorded: Mapping[str, Any] | None = None, *, held: bool = False
) -> Iterator[Run]:
    """The plan's run in the folder ``out``, made or gone on with, while nobody else writes to it. Raises InvalidSetting where
    the folder holds something else, InvalidInput where it is damaged."""
    with RunFolder(out, record(plan, recorded or {}), plan.questions.questions) as folder:
        yield Run(plan, folder, label, held)


def budget_of(plan: Plan) -> Budget:
    """What its models behind an API may cost, and what they did."""
    return Budget(plan.max_cost, plan.max_tokens)


async def execute(
    runs: Sequence[Run], watch: Watch | None = None, have: Mapping[Key, Any] | None = None, budget: Budget | None = None
) -> list[list[Row]]:
    """All rows of each run, in order. Models and indexes are opened only where something is missing, once for all runs that
    share them, and not at all where the caller ``has`` them.

    Whatever ends it early, what is finished is kept, and summed up where that is possible; the same call completes the rest.
    Raises TooManyFailures, BudgetSpent, WorkerDied, and what opening raises."""
    watch = watch or SILENT
    wanted, missing = sum(len(one.plan.keys) for one in runs), sum(len(one.missing) for one in runs)
    unfinished = [one for one in runs if one.missing]
    announced, progress = False, Progress(runs, watch)
    budget = budget or budget_of(runs[0].plan)
    if any(one.plan.remote for one in runs):
        watch.paying(budget)
    try:
        with spending(budget):
            while unfinished:
                sources = unfinished[0].plan.sources
                together = [one for one in unfinished if one.plan.sources == sources]
                unfinished = [one for one in unfinished if one.plan.sources != sources]
                how = together[0].plan.execution
                several = min(how.workers, sum(len(one.missing) for one in together))
                watch.opening(f"model {name_of(sources.model)}{where(how, several)}")
                async with _answering(together, several, have, watch.warn) as (answer, opened, read):
                    if not announced:
                        watch.asking(wanted, wanted - missing, together[0].plan.questions.dataset)
                        announced = True
                    for one in together:
                        one.folder.settle(opened.precision, opened.date)
                    async with progress.reading(read, is_elsewhere(how, several)):
                        works = [_work(one, partial(_named, answer, place), progress) for place, one in enumerate(together)]
                        under_way = how.concurrency or opened.under_way or CONCURRENCY
                        with _timed(together, under_way, several):
                            await run(works, concurrency=under_way)
    except RunStopped:
        for one in runs:
            if one.folder.rows:
                one.summarise(list(one.folder.rows.values()))
        raise
    finally:
        for one in runs if budget.models else ():
            one.folder.write_asked(budget.models)
    return [one.folder.finish(one.plan.keys) for one in runs]


@contextlib.contextmanager
def _timed(runs: Sequence[Run], under_way: int, processes: int) -> Iterator[None]:
    """What is answered inside, and how long that took, is noted in the folders; runs that share the time do so by tokens."""
    before = [set(one.folder.rows) for one in runs]
    began = time.monotonic()
    try:
        yield
    finally:
        seconds = time.monotonic() - began
        new = [[row for key, row in one.folder.rows.items() if key not in old] for one, old in zip(runs, before, strict=True)]
        tokens = [sum(row.cost.get("prompt_tokens", 0) + row.cost.get("generated_tokens", 0) for row in rows) for rows in new]
        for one, rows, count in zip(runs, new, tokens, strict=True):
            if count:
                shared = seconds * count / sum(tokens)
                note(one.folder.path, Pace(round(shared, 3), len(rows), count, under_way, processes))


def _work(one: Run, answer: Answers, progress: Progress) -> Work:
    async def answered(method: str, question: Question) -> Outcome:
        with progress.listening(one, method):
            return await answer(method, question)

    names, plan = [method.name for method in one.plan.methods], one.plan
    on_row = partial(progress.row, one)
    return Work(answered, names, plan.questions.questions, one.folder, plan.execution.max_failures, on_row)


async def _named(answer: Answers, place: int, method: str, question: Question) -> Outcome:
    """The answer of the method of the run in that place, in a row that bears the method's name."""
    found = await answer(label(place, method), question)
    return replace(found, row=replace(found.row, method=method))


@contextlib.asynccontextmanager
async def _answering(
    runs: Sequence[Run], processes: int, have: Mapping[Key, Any] | None, warn: Callable[[str], None]
) -> AsyncIterator[tuple[Answers, Methods | Pool[Outcome], Callable[[], int]]]:
    """Who answers, what is open for that, and how many tokens of prompts were read since, as far as this process knows."""
    today = date.today().isoformat()  # the same for all workers
    plans = [one.plan.in_precision(one.folder.precision).on_date(one.folder.date or today) for one in runs]
    plans = [replace(plan, question_set=None) for plan in plans]  # questions need not travel to other processes
    how = plans[0].execution
    if is_elsewhere(how, processes):
        async with workers(how, processes, partial(opened_methods, plans), partial(outcome, seed=how.seed), warn) as several:
            yield several, several, lambda: 0
        return
    async with opened_methods(plans, have) as methods:
        found, before = methods.opened, methods.opened.counted(READ)
        for one in runs:
            one.folder.note_model(getattr(found.model, "metadata", {}))
        yield here(methods, how.seed), methods, lambda: found.counted(READ) - before

"""Runs methods over questions, many at once, and keeps what comes out row by row."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.concurrency import gather
from gnothi.errors import GnothiError, RunStopped, TooManyFailures, origin, reason, sentence
from gnothi.events import record
from gnothi.own_code import running
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row, answered, failure
from gnothi.seeding import question_scope
from gnothi.types import Answer, Question
from gnothi.waiting import working

Answering = Callable[[Question], Awaitable[Answer]]
"""A method, as far as a run is concerned."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``events`` as they are written; ``trace`` of an error that is not the user's."""

    row: Row
    events: Sequence[Mapping[str, Any]]
    trace: str | None = None


async def outcome(name: str, method: Answering, question: Question, seed: int) -> Outcome:
    """Ask, and record what happens. Raises RunStopped alone: the question is asked when the run goes on."""
    trace = None
    with question_scope(seed, question.id), record() as events, working() as seconds:
        try:
            with running(f"code that method {name!r} uses"):
                answer = await method(question)
            row = answered(name, question, answer, events, seconds())
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
            row = failure(name, question, error, events, seconds())
            trace = None if isinstance(origin(error), GnothiError) else traceback.format_exc()
    return Outcome(row, [event.as_dict() for event in events], trace)


CONCURRENCY = 256
FIRST = 20
"""Questions of each method that are asked before the others."""

Answers = Callable[[str, Question], Awaitable[Outcome]]
"""Answers a question with the method of that name. Raises what stops the run."""


def here(methods: Mapping[str, Answering], seed: int) -> Answers:
    """Answers in this process."""
    return lambda name, question: outcome(name, methods[name], question, seed)


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked into one run folder: every question with every method, but for what the folder holds already.

    A question that raises becomes a failure row, and is tried again when the run goes on."""

    answer: Answers
    methods: Sequence[str]
    questions: Sequence[Question]
    folder: RunFolder
    max_failures: int | None = None
    on_row: Callable[[Row], None] | None = None

    def missing(self) -> list[list[tuple[str, Question]]]:
        """In two parts: the first questions of every method, then the rest."""
        early, late = self.questions[:FIRST], self.questions[FIRST:]
        return [
            [(name, question) for name in self.methods for question in part if self._lacks(name, question)]
            for part in (early, late)
        ]

    def _lacks(self, name: str, question: Question) -> bool:
        return (row := self.folder.rows.get((name, question.id))) is None or row.failed

    def finish(self) -> list[Row]:
        return self.folder.finish([(name, question.id) for name in self.methods for question in self.questions])


async def run(works: Sequence[Work], *, concurrency: int = CONCURRENCY) -> list[list[Row]]:
    """All rows of each, method by method. The first questions of all works and methods come first: so what the whole takes, and
    what is odd, shows early.

    At most ``concurrency`` questions are under way at a time. Raises TooManyFailures as soon as more questions of one work have
    failed than may, BudgetSpent when a model would cost more than it may, and WorkerDied.
    Whatever ends it early, finished rows are on disk and the same call completes the rest.
    """
    parts = [work.missing() for work in works]
    missing = [(place, *asked) for part in (0, 1) for place, found in enumerate(parts) for asked in found[part]]
    pending = iter(missing)
    failures = [0] * len(works)

    async def ask() -> None:
        for place, name, question in pending:
            work = works[place]
            one = await work.answer(name, question)
            row = one.row
            work.folder.append(row, one.events, one.trace)
            if work.on_row is not None:
                work.on_row(row)
            failures[place] += row.failed
            if work.max_failures is not None and failures[place] > work.max_failures:
                raise TooManyFailures(_hopeless(failures[place], row, work.folder))

    await gather(*(ask() for _ in range(min(concurrency, len(missing)))))
    return [work.finish() for work in works]


def _hopeless(failures: int, row: Row, folder: RunFolder) -> str:
    several = "s" * (failures != 1)
    return (
        f"stopped: {failures} question{several} failed, the last one ({row.question_id}, method {row.method}) with "
        f"{sentence(reason(row.error or {}))} What is finished is kept in {folder.path}: remove the cause and give the same "
        "command again, or allow more with <--max-failures>."
    )

"""Runs methods over questions, thousands at once, and keeps what comes out row by row."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gnothi.concurrency import gather
from gnothi.errors import GnothiError, RunStopped, TooManyFailures
from gnothi.evaluation.rows import Row, answered, failure
from gnothi.evaluation.run_folder import RunFolder
from gnothi.events import record
from gnothi.seeding import question_scope
from gnothi.types import Answer, Question

CONCURRENCY = 256

Answering = Callable[[Question], Awaitable[Answer]]
"""A method, as far as a run is concerned."""


async def run(
    methods: Mapping[str, Answering],
    questions: Sequence[Question],
    folder: RunFolder,
    *,
    seed: int = 0,
    concurrency: int = CONCURRENCY,
    max_failures: int | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Answer every question with every method but for what ``folder`` holds already; returns all rows, method by method.

    At most ``concurrency`` questions are under way at a time. A question that raises becomes a failure row; such rows are
    tried again when the run goes on. Raises TooManyFailures as soon as more than ``max_failures`` questions have failed, and
    BudgetSpent when a model would cost more than it may.
    Whatever ends the run early, finished rows are on disk and the same call completes the rest.
    """
    order = [(name, question.id) for name in methods for question in questions]
    missing = [
        (name, question)
        for name in methods
        for question in questions
        if (row := folder.rows.get((name, question.id))) is None or row.failed
    ]
    pending = iter(missing)
    failures = 0

    async def work() -> None:
        nonlocal failures
        for name, question in pending:
            row = await _answer(name, methods[name], question, folder, seed)
            if on_row is not None:
                on_row(row)
            failures += row.failed
            if max_failures is not None and failures > max_failures:
                raise TooManyFailures(_hopeless(failures, row, folder))

    await gather(*(work() for _ in range(min(concurrency, len(missing)))))
    return folder.finish(order)


async def _answer(name: str, method: Answering, question: Question, folder: RunFolder, seed: int) -> Row:
    start, trace = time.perf_counter(), None
    with question_scope(seed, question.id), record() as events:
        try:
            answer = await method(question)
            row = answered(name, question, answer, events, time.perf_counter() - start)
        except RunStopped:
            raise  # no fault of this question: it is asked when the run goes on
        except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
            row = failure(name, question, error, events, time.perf_counter() - start)
            trace = None if isinstance(error, GnothiError) else traceback.format_exc()
    folder.append(row, events, trace)
    return row


def _hopeless(failures: int, row: Row, folder: RunFolder) -> str:
    error = row.error or {}
    return (
        f"stopped: {failures} questions failed, the last one ({row.question_id}, method {row.method}) with "
        f"{error.get('type')}: {error.get('message')} What is finished is kept in {folder.path}: remove the cause and give the "
        "same command again, or allow more with --max-failures."
    )


def fingerprint(questions: Sequence[Question]) -> str:
    """A digest of everything that a run takes from its questions, so that a changed file is noticed when it goes on."""
    digest = hashlib.blake2b(digest_size=8)
    for question in questions:
        digest.update(repr((question.id, question.text, question.answers, question.choices, question.kind)).encode())
    return digest.hexdigest()

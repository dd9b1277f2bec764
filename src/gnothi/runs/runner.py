"""Runs methods over questions, thousands at once, and keeps what comes out row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gnothi.concurrency import gather
from gnothi.errors import TooManyFailures
from gnothi.runs.folder import RunFolder
from gnothi.runs.outcomes import Answering, Outcome, outcome
from gnothi.runs.rows import Row
from gnothi.types import Question

CONCURRENCY = 256

Answer = Callable[[str, Question], Awaitable[Outcome]]
"""Answers a question with the method of that name. Raises what stops the run."""


def here(methods: Mapping[str, Answering], seed: int) -> Answer:
    """Answers in this process."""
    return lambda name, question: outcome(name, methods[name], question, seed)


async def run(
    answer: Answer,
    methods: Sequence[str],
    questions: Sequence[Question],
    folder: RunFolder,
    *,
    concurrency: int = CONCURRENCY,
    max_failures: int | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Have every question answered with every method but for what ``folder`` holds already; returns all rows, method by method.

    At most ``concurrency`` questions are under way at a time. A question that raises becomes a failure row; such rows are
    tried again when the run goes on. Raises TooManyFailures as soon as more than ``max_failures`` questions have failed,
    BudgetSpent when a model would cost more than it may, and WorkerDied.
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
            one = await answer(name, question)
            row = one.row
            folder.append(row, one.events, one.trace)
            if on_row is not None:
                on_row(row)
            failures += row.failed
            if max_failures is not None and failures > max_failures:
                raise TooManyFailures(_hopeless(failures, row, folder))

    await gather(*(work() for _ in range(min(concurrency, len(missing)))))
    return folder.finish(order)


def _hopeless(failures: int, row: Row, folder: RunFolder) -> str:
    error = row.error or {}
    return (
        f"stopped: {failures} questions failed, the last one ({row.question_id}, method {row.method}) with "
        f"{error.get('type')}: {error.get('message')} What is finished is kept in {folder.path}: remove the cause and give the "
        "same command again, or allow more with <--max-failures>."
    )


def fingerprint(questions: Sequence[Question]) -> str:
    """A digest of everything that a run takes from its questions, so that a changed file is noticed when it goes on."""
    digest = hashlib.blake2b(digest_size=8)
    for question in questions:
        taken = (question.id, question.text, question.answers, question.choices, question.kind)
        digest.update(repr(taken).encode())
        if question.metadata.get("answerable") is False:
            digest.update(b"unanswerable")
    return digest.hexdigest()

"""Processes that answer: the same rows as in one process, and no question lost whatever happens to them."""

from __future__ import annotations

import asyncio
import multiprocessing
from functools import partial
from pathlib import Path

import pytest

from gnothi.errors import BudgetSpent, GnothiError, TooManyFailures, UsageError, WorkerDied
from gnothi.runs.folder import RunFolder, read_events
from gnothi.runs.outcomes import outcome
from gnothi.runs.rows import Row
from gnothi.runs.runner import Answer, here
from gnothi.runs.workers import Open, workers
from gnothi.types import Question
from tests.runs.scripted import open_nothing, open_scripted, run_one

METHODS = ("scripted", "other")


def questions(n: int, **texts: str) -> list[Question]:
    made = [Question(f"q{number}", f"What is {number}?", (str(number),), kind="one_hop") for number in range(n)]
    return [*made, *(Question(id, text, ("gold",)) for id, text in texts.items())]


def evaluate(
    out: Path, asked: list[Question], count: int = 2, opened: Open = open_scripted, max_failures: int | None = None
) -> list[Row]:
    async def work() -> list[Row]:
        with RunFolder(out, {"seed": 1}) as folder:

            async def complete(answer: Answer) -> list[Row]:
                return await run_one(answer, METHODS, asked, folder, concurrency=16, max_failures=max_failures)

            if count:
                async with workers(count, opened, partial(outcome, seed=1)) as answer:
                    return await complete(answer)
            async with open_scripted() as methods:
                return await complete(here(methods, 1))

    try:
        return asyncio.run(work())
    finally:
        assert not multiprocessing.active_children()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row], Path, list[Row]]:
    asked = questions(40, wrong="raise")
    alone, several = tmp_path_factory.mktemp("alone") / "run", tmp_path_factory.mktemp("several") / "run"
    return alone, evaluate(alone, asked, 0), several, evaluate(several, asked)


def test_rows_are_those_of_one_process(both: tuple[Path, list[Row], Path, list[Row]]) -> None:
    _, expected, _, rows = both
    assert [row.comparable() for row in rows] == [row.comparable() for row in expected]
    assert [row.question_id for row in rows if row.failed] == ["wrong"]


def test_events_are_those_of_one_process(both: tuple[Path, list[Row], Path, list[Row]]) -> None:
    alone, rows, several, _ = both
    keys = [row.key for row in rows]
    assert read_events(several, keys) == read_events(alone, keys)


def test_every_worker_works(tmp_path: Path) -> None:
    asked = [Question(f"q{number}", "who", ("gold",)) for number in range(20)]
    answers = {row.answer for row in evaluate(tmp_path / "run", asked, opened=partial(open_scripted, 0.01))}
    assert len({answer.split(" by ")[-1] for answer in answers if answer and " by " in answer}) == 2


@pytest.mark.parametrize(
    ("error", "kind", "message"), [("q7", UsageError, "q7 was refused 1 times"), ("", RuntimeError, "a bug")]
)
def test_what_opening_raises_arrives(tmp_path: Path, error: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        evaluate(tmp_path / "run", questions(2), opened=partial(open_nothing, error))


def test_a_worker_that_dies_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match=r"killed by signal 9.*workers.*same command"):
        evaluate(tmp_path / "run", questions(40, last="die"))
    rows = evaluate(tmp_path / "run", questions(40, last="what?"))
    assert len(rows) == 82
    assert not any(row.failed for row in rows)


def test_what_stops_a_run_stops_it_from_a_worker(tmp_path: Path) -> None:
    with pytest.raises(BudgetSpent, match="nothing is left"):
        evaluate(tmp_path / "run", questions(2, last="stop"))


def test_too_many_failures_end_the_workers(tmp_path: Path) -> None:
    with pytest.raises(TooManyFailures):
        evaluate(tmp_path / "run", questions(60, a="raise", b="raise"), max_failures=1)


def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    async def interrupted() -> None:
        with RunFolder(tmp_path / "run", {}) as folder:
            async with workers(2, partial(open_scripted, 5.0), partial(outcome, seed=1)) as answer:
                task = asyncio.create_task(run_one(answer, METHODS, questions(20), folder, concurrency=4))
                await asyncio.sleep(0.2)
                task.cancel()
                await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not multiprocessing.active_children()


def test_errors_keep_their_exit_code(tmp_path: Path) -> None:
    with pytest.raises(GnothiError) as caught:
        evaluate(tmp_path / "run", questions(1), opened=partial(open_nothing, "q1"))
    assert caught.value.exit_code == UsageError.exit_code

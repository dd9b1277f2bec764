"""Processes that answer: the same rows as in one process, and no question lost whatever happens to them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import BudgetSpent, UsageError, WorkerDied
from gnothi.runs.folder import RunFolder, read_events
from gnothi.runs.host import Open
from gnothi.runs.rows import Row
from gnothi.runs.runner import Answers, here, outcome
from gnothi.session.plan import Execution
from gnothi.session.workers import workers
from gnothi.types import Question
from tests.messages import refused
from tests.runs import orphans
from tests.runs.scripted import open_and_exit, open_for_ever, open_nothing, open_once_lost, open_scripted, run_one
from tests.stopping import ROOT

METHODS = ("scripted", "other")
TRACEBACK = r"(?s)Traceback.*(?=\n\S)"


class OnlyHere:
    """As a function of a module that other processes do not have."""

    def __call__(self) -> Any:
        pytest.fail("it is never called")

    def __reduce__(self) -> tuple[Any, ...]:
        return _only_in, (os.getpid(),)


def _only_in(process: int) -> OnlyHere:
    if os.getpid() != process:
        raise ValueError("only here")
    return OnlyHere()


def questions(n: int, **texts: str) -> list[Question]:
    made = [Question(f"q{number}", f"What is {number}?", (str(number),), kind="one_hop") for number in range(n)]
    return [*made, *(Question(id, text, ("gold",)) for id, text in texts.items())]


def evaluate(
    out: Path,
    asked: list[Question],
    count: int = 2,
    opened: Open = open_scripted,
    max_failures: int | None = None,
    warned: list[str] | None = None,
) -> list[Row]:
    async def work() -> list[Row]:
        with RunFolder(out, {"seed": 1}) as folder:

            async def complete(answer: Answers) -> list[Row]:
                return await run_one(answer, METHODS, asked, folder, concurrency=16, max_failures=max_failures)

            if count:
                tell = ([] if warned is None else warned).append
                async with workers(Execution(), count, opened, partial(outcome, seed=1), tell) as answer:
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


@pytest.mark.parametrize(("error", "kind"), [("q7", UsageError), ("", RuntimeError)])
def test_what_opening_raises_arrives(tmp_path: Path, error: str, kind: type[Exception]) -> None:
    with refused(kind, varies=TRACEBACK):
        evaluate(tmp_path / "run", questions(2), 1, partial(open_nothing, error))


def test_a_worker_that_dies_each_time_ends_the_run_and_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    warned: list[str] = []
    with refused(WorkerDied, varies=r"'q\d+'"):
        evaluate(tmp_path / "run", questions(40, last="die"), warned=warned)
    assert len(warned) == 3
    rows = evaluate(tmp_path / "run", questions(40, last="what?"), 0)
    assert len(rows) == 82
    assert not any(row.failed for row in rows)


def test_a_killed_worker_costs_its_questions_in_flight_which_are_asked_again(tmp_path: Path) -> None:
    warned: list[str] = []
    log = tmp_path / "log"
    rows = evaluate(tmp_path / "run", questions(60), opened=partial(open_once_lost, str(log)), warned=warned)
    assert [row.question_id for row in rows if row.failed] == []
    assert [row.key for row in rows] == [(method, f"q{number}") for method in METHODS for number in range(60)]
    assert len((tmp_path / "run" / "rows.jsonl").read_text().splitlines()) == 120
    (said,) = warned
    lost = re.fullmatch(
        r"a worker process was lost with (\d+) questions that are asked again: it was killed by signal 9\.", said
    )
    assert lost, said
    # Of those in flight, some may have been computed already without having left.
    asked = log.read_text().splitlines()
    assert 120 < len(asked) <= 120 + int(lost[1]) <= 120 + 16
    assert len({line.partition(" ")[0] for line in asked}) >= 2


def test_workers_that_never_open_end_the_run(tmp_path: Path) -> None:
    with refused(WorkerDied):
        evaluate(tmp_path / "run", questions(2), 1, open_and_exit)


def test_what_cannot_be_found_in_a_worker_is_said(tmp_path: Path) -> None:
    with refused(RuntimeError, varies=TRACEBACK):
        evaluate(tmp_path / "run", questions(2), 1, OnlyHere())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends a process that lets nothing else run")
@pytest.mark.parametrize("busy", ["loading", "waiting"])
def test_no_worker_outlives_a_killed_parent(tmp_path: Path, busy: str) -> None:
    """Also one that loads a library, which lets no other thread run meanwhile."""
    parent = subprocess.Popen(
        [sys.executable, "-m", orphans.__name__, busy, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    until = time.monotonic() + 120
    while len(begun := list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < until
        assert parent.poll() is None
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 120  # what it is busy with takes ten minutes
    while any(alive(int(one.name)) for one in begun):
        assert time.monotonic() < until, "a worker outlived its parent"
        time.sleep(0.02)


def alive(process: int) -> bool:
    try:
        return Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_stops_a_run_stops_it_from_a_worker(tmp_path: Path) -> None:
    with refused(BudgetSpent):
        evaluate(tmp_path / "run", questions(2, last="stop"), 1)


def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    async def interrupted() -> None:
        with RunFolder(tmp_path / "run", {}) as folder:
            async with workers(Execution(), 2, partial(open_scripted, 600.0), partial(outcome, seed=1), pytest.fail) as answer:
                task = asyncio.create_task(run_one(answer, METHODS, questions(20), folder, concurrency=4))
                while sum(worker.place.busy for worker in answer._workers) < 4:  # noqa: ASYNC110 - nobody is told of it
                    await asyncio.sleep(0)
                task.cancel()
                await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not multiprocessing.active_children()


def test_what_is_still_opening_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.runs.pool._HASTE", 1e6)
    begun = tmp_path / "begun"

    async def interrupted() -> None:
        entering = asyncio.create_task(enter())
        while not begun.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        entering.cancel()
        await entering

    async def enter() -> None:
        async with workers(Execution(), 1, partial(open_for_ever, str(begun)), partial(outcome, seed=1), pytest.fail):
            pytest.fail("it cannot be open")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not multiprocessing.active_children()

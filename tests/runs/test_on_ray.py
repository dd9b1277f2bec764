"""Actors of Ray that answer, with a Ray of ours in this process: what is lost is asked again, what is wrong is said. The real
one: ``make test-beside``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gnothi.errors import BudgetSpent, InvalidSetting, MissingDependency, UsageError, WorkerDied
from gnothi.runs import host as module
from gnothi.runs.folder import RunFolder
from gnothi.runs.on_ray import address_of
from gnothi.runs.rows import Row
from gnothi.runs.runner import here, outcome
from gnothi.session.plan import Execution
from gnothi.session.workers import workers
from gnothi.types import Question
from tests.messages import refused
from tests.runs.fake_ray import FakeRay, Lost
from tests.runs.scripted import ScriptedMethod, open_nothing, open_scripted, questions, run_one

METHODS = ("scripted", "other")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def evaluate(out: Path, asked: list[Question], count: int = 2, opened: Any = open_scripted, **more: Any) -> list[Row]:
    warned: list[str] = more.pop("warned", [])

    async def work() -> list[Row]:
        with RunFolder(out, {"seed": 1}) as folder:
            ask = partial(outcome, seed=1)
            execution = Execution(on=more.pop("spec", "ray"), gpus=more.pop("gpus", None))
            async with workers(execution, count, opened, ask, warned.append) as answer:
                return await run_one(answer, METHODS, asked, folder, concurrency=8)

    return asyncio.run(work())


def test_rows_are_those_of_one_process(tmp_path: Path, ray: FakeRay) -> None:
    async def alone() -> list[Row]:
        with RunFolder(tmp_path / "alone", {"seed": 1}) as folder:
            async with open_scripted() as methods:
                return await run_one(here(methods, 1), METHODS, asked, folder)

    asked = [*questions(20), Question("wrong", "raise", ("gold",))]
    rows = evaluate(tmp_path / "ray", asked)
    assert [row.comparable() for row in rows] == [row.comparable() for row in asyncio.run(alone())]
    assert (len(ray.actors), all(one.dead for one in ray.actors), ray.up) == (2, True, False)


def test_questions_of_a_lost_actor_are_asked_again(tmp_path: Path, ray: FakeRay) -> None:
    warned: list[str] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, ScriptedMethod]]:
        def reply(question: Question) -> str:
            if question.id == "q5" and len(ray.actors) == 2:
                ray.actors[0].dead = True
            return question.answers[0]

        yield {name: ScriptedMethod(name, reply, seconds=0.01) for name in METHODS}

    rows = evaluate(tmp_path / "run", questions(30), opened=opened, warned=warned)
    assert len({row.key for row in rows}) == 60
    assert not any(row.failed for row in rows)
    assert len(ray.actors) == 3
    assert [text.rpartition(": ")[2] for text in warned] == ["its node has terminated."]
    written = (tmp_path / "run" / "rows.jsonl").read_text().splitlines()
    assert len(written) == 60


def test_a_question_that_ends_every_actor_stops_the_run(tmp_path: Path, ray: FakeRay) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, ScriptedMethod]]:
        def reply(question: Question) -> str:
            if question.id == "q9":
                for one in ray.actors:
                    one.dead = True
            return question.answers[0]

        yield {name: ScriptedMethod(name, reply) for name in METHODS}

    with refused(WorkerDied):
        evaluate(tmp_path / "run", questions(10), opened=opened)
    assert len((tmp_path / "run" / "rows.jsonl").read_text().splitlines()) > 0
    assert not ray.up


@pytest.mark.usefixtures("ray")
def test_actors_that_never_open_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRay, "started", lambda *_: SimpleNamespace(open=SimpleNamespace(remote=lost)))
    monkeypatch.setattr(FakeRay, "kill", lambda *_: None)

    async def lost() -> None:
        raise Lost("out of memory")

    with refused(WorkerDied):
        evaluate(tmp_path / "run", questions(2))


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(("error", "kind"), [("q7", UsageError), ("", RuntimeError)])
def test_what_opening_raises_arrives(tmp_path: Path, error: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        evaluate(tmp_path / "run", questions(2), opened=partial(open_nothing, error))


@pytest.mark.usefixtures("ray")
def test_what_stops_a_run_stops_it_from_an_actor(tmp_path: Path) -> None:
    with refused(BudgetSpent):
        evaluate(tmp_path / "run", [*questions(2), Question("last", "stop", ("gold",))])


@pytest.mark.usefixtures("ray")
def test_another_version_on_a_node_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WorkerInfo", lambda *_: SimpleNamespace(version="0.0", under_way=None, precision=None))
    with refused(InvalidSetting):
        evaluate(tmp_path / "run", questions(2))


@pytest.mark.usefixtures("ray")
def test_nodes_that_compute_in_different_precisions_are_refused(tmp_path: Path) -> None:
    class Methods(dict[str, ScriptedMethod]):
        precision = "float32"

    opened_before: list[int] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, ScriptedMethod]]:
        methods = Methods({name: ScriptedMethod(name) for name in METHODS})
        methods.precision = "bfloat16" if opened_before else "float32"
        opened_before.append(1)
        yield methods

    with refused(InvalidSetting):
        evaluate(tmp_path / "run", questions(20), opened=opened)


@pytest.mark.parametrize(
    ("nodes", "count", "gpus", "expected"),
    [
        (({"CPU": 4.0}, {"CPU": 2.0}), 1, None, (4, 0.0)),
        (({"CPU": 4.0}, {"CPU": 2.0}), 2, None, (2, 0.0)),
        (({"CPU": 4.0}, {"CPU": 2.0}), 9, None, (1, 0.0)),
        (({"CPU": 4.0, "GPU": 2.0}, {"CPU": 2.0}), 2, None, (1, 1.0)),
        (({"CPU": 4.0, "GPU": 2.0},), 4, 0.5, (1, 0.5)),
        (({"CPU": 4.0, "GPU": 2.0},), 2, 0.0, (2, 0.0)),
    ],
)
def test_what_an_actor_gets(
    nodes: tuple[dict[str, float], ...],
    count: int,
    gpus: float | None,
    expected: tuple[int, float],
    tmp_path: Path,
    ray: FakeRay,
) -> None:
    ray.resources = nodes
    evaluate(tmp_path / "run", questions(1), count, gpus=gpus)
    assert (ray.options["num_cpus"], ray.options["num_gpus"]) == expected


@pytest.mark.parametrize(
    ("nodes", "gpus"),
    [
        (({"CPU": 4.0, "GPU": 2.0},), 3.0),
        (({"CPU": 4.0},), 0.5),
        (({"memory": 1.0},), None),
    ],
)
def test_no_room_is_said(nodes: tuple[dict[str, float], ...], gpus: float | None, tmp_path: Path, ray: FakeRay) -> None:
    ray.resources = nodes
    with refused(InvalidSetting):
        evaluate(tmp_path / "run", questions(1), gpus=gpus)
    assert (ray.actors, ray.up) == ([], False)


@pytest.mark.usefixtures("ray")
def test_a_ray_that_is_started_tells_nobody_and_gives_way_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is told to."""
    names = ("RAY_USAGE_STATS_ENABLED", "RAY_worker_niceness")
    for name in names:
        monkeypatch.setenv(name, "1")
    evaluate(tmp_path / "told", questions(1))
    assert [os.environ[name] for name in names] == ["1", "1"]
    for name in names:
        monkeypatch.delenv(name)
    evaluate(tmp_path / "untold", questions(1))
    assert [os.environ[name] for name in names] == ["0", "0"]


@pytest.mark.parametrize("ours", [True, False])
def test_who_handles_sigterm_still_does(tmp_path: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch, ours: bool) -> None:
    """Ray takes it. By default it may keep it: it ends what it started."""

    def rays(*_: object) -> None: ...

    def heard(*_: object) -> None: ...

    def init(**_: Any) -> None:
        ray.up = True
        signal.signal(signal.SIGTERM, rays)

    before = signal.signal(signal.SIGTERM, heard if ours else signal.SIG_DFL)
    monkeypatch.setattr(ray, "init", init)
    try:
        evaluate(tmp_path / "run", questions(1))
        assert signal.getsignal(signal.SIGTERM) is (heard if ours else rays)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_cluster_that_is_not_there(tmp_path: Path, ray: FakeRay) -> None:
    ray.refuses = True
    with refused(InvalidSetting):
        evaluate(tmp_path / "run", questions(1), spec="ray:host:1")


def test_a_session_of_the_callers_stays(tmp_path: Path, ray: FakeRay) -> None:
    ray.up = True
    evaluate(tmp_path / "run", questions(1))
    assert (ray.up, ray.addresses) == (True, [])


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused(MissingDependency):
        evaluate(tmp_path / "run", questions(1))


@pytest.mark.parametrize(("spec", "address"), [("ray", None), ("ray:10.0.0.1:6379", "10.0.0.1:6379")])
def test_addresses(spec: str, address: str | None) -> None:
    assert address_of(spec) == address


@pytest.mark.parametrize("spec", ["", "ray:", "dask", "rays:1", "Ray"])
def test_what_is_no_cluster(spec: str) -> None:
    with refused(InvalidSetting):
        address_of(spec)

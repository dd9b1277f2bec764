"""A faulting world: a disk that fills, handles that run out, a clock that jumps. The job goes on where it was."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_killed as killed

_LARGEST: dict[str, int] = {}
"""Bytes of the largest file that a job makes."""


def _full(rng: Random, most: int) -> Callable[[], None]:
    """Of any order of size, or anywhere within what the job writes: most of it is written at its end."""
    size = int(2 ** rng.uniform(0, 15) if rng.random() < 0.4 else rng.uniform(0, most))

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    return limit


def _handles(rng: Random, _: int) -> Callable[[], None]:
    spare = rng.randint(0, 24)

    def limit() -> None:
        taken = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 1 + spare, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    return limit


def _clock(rng: Random, _: int) -> Callable[[], None]:
    real, far = time.time, 10 ** rng.randint(3, 9)

    def jump() -> None:
        time.time = lambda: real() + rng.uniform(-far, far)

    return jump


FAULTS: Mapping[str, Callable[[Random, int], Callable[[], None]]] = {
    "full disk": _full,
    "no handles": _handles,
    "clock": _clock,
}


def prepare(folder: Path, only: str) -> None:
    killed.prepare(folder, only)


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """A job under a fault, once or twice, then again without."""
    rng = Random(f"{seed} world {number}")
    fault, _, name = only.partition(": ")
    fault, name = fault or rng.choice(list(FAULTS)), name or rng.choice(list(killed.JOBS))
    job = killed.JOBS[name]
    expected, _, _ = killed.undisturbed(name, folder)
    if name not in _LARGEST:  # it was just made
        _LARGEST[name] = max(one.stat().st_size for one in (Path("made"), *Path("made").rglob("*")) if one.is_file())
    killed.fresh(folder)
    problems: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        found = killed.run(job.command, FAULTS[fault](rng, _LARGEST[name]))
        problems += found.problems
        if found.code == 0 and not killed.same(job, expected):
            problems.append("says it is done, and is not")
        problems += killed.run(job.look).problems
    last = killed.run(job.command)
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}")
    elif not killed.same(job, expected):
        problems.append("ends in something else than undisturbed")
    return {**killed.row(name, job, [fault], last, problems), "target": f"{fault}: {name}"}

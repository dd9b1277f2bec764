"""A run on a cluster of Ray whose drivers and actors are killed at random rows: the rows of a run without Ray, each once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_killed import rows_of
from benchmarks._faults_own_time import family
from benchmarks._faults_trial import patience
from benchmarks._shared import ROOT
from gnothi.runs.folder import RunFolder
from gnothi.runs.runner import here, outcome
from gnothi.session.plan import Execution
from gnothi.session.workers import workers
from tests.runs.scripted import open_scripted, questions, run_one

_METHODS = ("scripted", "other")
_SEED, _QUESTIONS, _CONCURRENCY, _SECONDS = 7, 60, 4, 0.1
_ACTORS = 2
_LATE = 60.0
_state: dict[str, Any] = {}
KINDS = ()
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    """One cluster for all trials; it ends with this process."""
    from ray.cluster_utils import Cluster

    folder.mkdir(parents=True)
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    os.environ.update({"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"})
    head = {"num_cpus": _ACTORS, "include_dashboard": False}
    _state["cluster"] = Cluster(initialize_head=True, head_node_args=head)
    local = folder / "local"
    if code := _started(local, "", folder / "said").wait():
        raise RuntimeError(f"a run without Ray ends with {code}: {(folder / 'said').read_text()}")
    _state["expected"] = rows_of(local)


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:  # noqa: ARG001
    """Some kills, then to the end."""
    rng = Random(f"{seed} ray {number}")
    out, said = folder / f"made-{number}", folder / "said"
    spec = f"ray:{_state['cluster'].address}"
    told: list[str] = []
    problems: list[str] = []
    driver: subprocess.Popen[bytes] | None = None
    for _ in range(rng.randint(4, 10)):
        driver = driver or _started(out, spec, said)
        if not _reached(out, _rows(out) + rng.randint(1, 12), driver):
            break
        at = _rows(out)
        if rng.random() < 0.5:
            driver.kill()
            driver.wait()
            driver = None
            told.append(f"the driver at row {at}")
            if not _soon(lambda: not _actors()):
                problems.append("actors outlive their driver")
        elif actors := _actors():
            os.kill(rng.choice(actors), signal.SIGKILL)
            told.append(f"one of {len(actors)} actors at row {at}")
    driver = driver or _started(out, spec, said)
    code = _end(driver)
    words = said.read_text("utf-8", "replace")
    if code == 1 and "and each was lost with it" in words:  # as it should: three actors with the same question
        told.append("the driver gives up")
        code = _end(_started(out, spec, said))
        words = said.read_text("utf-8", "replace")
    if code:
        problems.append("does not end" if code == -signal.SIGKILL else f"does not go on: exit code {code}: {words[-200:]}")
    elif rows_of(out) != _state["expected"]:
        problems.append("ends in something else than without Ray")
    return {
        "target": "a run on Ray",
        "command": "python -m benchmarks._faults_ray",
        "changed": told,
        "faults": (kills := sum(" at row " in one for one in told)),
        "kills": kills,
        "signals": [],
        "code": code,
        "problems": list(dict.fromkeys(problems)),
        "said": (words.strip().splitlines() or [""])[-1][:200],
    }


def _started(out: Path, spec: str, said: Path) -> subprocess.Popen[bytes]:
    with said.open("wb") as file:
        return subprocess.Popen([sys.executable, "-m", __name__, str(out), spec], cwd=ROOT, stdout=file, stderr=file)


def _rows(out: Path) -> int:
    return (out / "rows.jsonl").read_bytes().count(b"\n") if (out / "rows.jsonl").is_file() else 0


def _reached(out: Path, rows: int, driver: subprocess.Popen[bytes]) -> bool:
    """Whether so many rows were written before the driver ended."""
    _soon(lambda: _rows(out) >= rows or driver.poll() is not None)
    return driver.poll() is None and _rows(out) >= rows


def _end(driver: subprocess.Popen[bytes]) -> int:
    try:
        return driver.wait(patience(_LATE))
    except subprocess.TimeoutExpired:
        driver.kill()
        return driver.wait()


def _soon(done: Any) -> bool:
    until = time.monotonic() + patience(_LATE)
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _actors() -> list[int]:
    """Processes of the cluster's actors: those that descend from this one, which started it."""
    found = []
    for one in family(os.getpid()):
        with contextlib.suppress(OSError):
            found += [one] if Path(f"/proc/{one}/cmdline").read_bytes().startswith(b"ray::Host") else []
    return found


# --- the driver ----------------------------------------------------------------------------------------------------------


async def _run(out: Path, spec: str) -> None:
    """The run, on the cluster at ``spec``, or without Ray."""
    opened, asked = partial(open_scripted, _SECONDS), questions(_QUESTIONS)
    with RunFolder(out, {"seed": _SEED}) as folder:
        if not spec:
            async with opened() as methods:
                await run_one(here(methods, _SEED), _METHODS, asked, folder, _CONCURRENCY)
            return
        async with workers(Execution(on=spec), _ACTORS, opened, partial(outcome, seed=_SEED), print) as answer:
            await run_one(answer, _METHODS, asked, folder, _CONCURRENCY)


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2]))

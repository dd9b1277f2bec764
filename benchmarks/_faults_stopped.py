"""Ctrl-C or SIGTERM at a random change of a file: the job ends soon, says how to go on, and does so with the same command."""

from __future__ import annotations

import signal
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_killed as killed
from benchmarks._faults_trial import patience
from gnothi.cli import signals

_PATIENCE = 2.0
"""Seconds, beyond those of the whole job."""
_CODE = f"exit code {signals.INTERRUPTED}"
KINDS = killed.KINDS
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:
    killed.prepare(folder, only)


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """Once or twice, then to the end."""
    rng = Random(f"{seed} stopped {number}")
    name = only or rng.choice(list(killed.JOBS))
    job = killed.JOBS[name]
    expected, events, seconds = killed.undisturbed(name, folder)
    killed.fresh(folder)
    problems: list[str] = []
    done: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        how = rng.choice((signal.SIGINT, signal.SIGTERM))
        at, began = rng.randint(1, events), time.monotonic()
        found = killed.run(job.command, partial(_arm, at, how))
        done.append(f"{how.name} at change {at} of {events}: exit code {found.code}")
        problems += (one for one in found.problems if one != _CODE)
        if found.code not in (0, 128 + how):
            problems.append(f"{how.name} ends in exit code {found.code}")
        if found.code == 128 + how and "same command" not in " ".join(found.err.split()):
            problems.append(f"{how.name}: not said how to go on")
        if time.monotonic() - began > seconds + patience(_PATIENCE):
            problems.append(f"{how.name}: does not end soon")
        problems += killed.run(job.look).problems
    last = killed.run(job.command)
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}")
    elif not killed.same(job, expected):
        problems.append("ends in something else than undisturbed")
    return killed.row(name, job, done, last, problems, len(done))


def _arm(at: int, how: int) -> None:
    signals.heed()
    killed._arm(at, how)

"""Whole commands with little memory: trainings, vectors, runs. Each says so, or is ended, and goes on where it has enough."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_programs as programs
from benchmarks._faults_killed import fresh
from benchmarks._faults_programs import PROGRAMS, ProgramExit, Tally, ended, row, undisturbed

_NOT = ("serve with feedback", "eval with workers")
"""A server has no end to compare, and workers have limits of their own."""
_CODES = (1, 3)
"""Of what a command says when it ends short of memory: some questions failed, or a resource is not there."""
_TRACEBACK, _OURS = "Traceback (most recent", "gnothi/cli/main.py"
_ASIDE = re.compile(r"^Exception ignored in.*\n(?:Traceback.*\n)?(?:\s.*\n)*.*Error.*$", re.MULTILINE)
KINDS = tuple(one for one in PROGRAMS if one not in _NOT)
"""What ``--only`` may name."""

prepare = programs.prepare


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """Once or twice with little memory, then with enough."""
    rng = Random(f"{seed} starved {number}")
    name = rng.choice(only.split(",") if only else list(KINDS))
    program, work = PROGRAMS[name], folder / "work"
    whole = undisturbed(name, folder)
    fresh(folder)
    tally = Tally()
    met = 0
    for _ in range(rng.choice((1, 2))):
        spare = int(2 ** rng.uniform(18, 28))
        done = programs.run(program, work, memory=spare)
        how = "which ends the process" if done.code < 0 else f"exit code {done.code}"
        tally.log.append(f"{spare / 2**20:.1f} MB more than at its beginning: {how}")
        met += done.code != 0
        tally.problems += _wrong(done) if done.code else ended(program, done, whole.result)
    last = programs.run(program, work)
    tally.problems += [*last.problems, *ended(program, last, whole.result)]
    return {**row(name, program.command, tally, last), "faults": met}


def _wrong(done: ProgramExit) -> list[str]:
    """A library in another language that gets no memory may end the process: that counts as a kill. What Python itself says of
    memory that it had none of ("Exception ignored in") stands beside our sentence, and is not counted; nor is an end before the
    command began."""
    said = _ASIDE.sub("", done.output)
    if done.code < 0 or ("MemoryError" in said and _OURS not in said):
        return []
    problems = [*done.problems, *([f"traceback: {said.strip().splitlines()[-1]:.80}"] if _TRACEBACK in said else [])]
    return problems if done.code in _CODES or problems else [f"exit code {done.code}"]

"""SIGKILL, SIGTERM and Ctrl-C at random moments of whole commands and their models: trainings, vectors, workers, a server.

Unlike ``killed`` and ``stopped``, each command is a program of its own with what it loads. A trial stops one again and again,
each time to go on from there, until it has come to its end; the moment is a change of a file, or one of the seconds that the
program spends. Most programs are forked with their imports done, so that it falls into their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_own_time as own_time
from benchmarks._faults_killed import fresh, rows_of
from benchmarks._faults_nursery import Nursery, Start
from benchmarks._faults_nursery import Program as Forked
from benchmarks._faults_trial import STEERING
from gnothi.training.finetuning import HEADER, METRICS

SECONDS = 5.0
"""Of a program's own, in which it ends when it is asked to: a model is at work in all of them."""
_LONG = 300.0
"""Seconds of its own that no program takes, all in all."""
_IDLE = 0.15
"""Share of a program in which it does nothing that is of interest; nor may it have begun to hear signals other than SIGKILL."""
_IMPORTS = 8.0
"""Seconds that a program spends before, where it is not forked."""
_REAL = 0.05
"""Share of the trials whose programs are started by Python, imports and all."""
_TIMES = 12
"""A program is stopped at most so often, then left alone."""
_START = "import sys; from gnothi.cli.main import main; main(sys.argv[1:])"
# An untrained model never ends its replies, which makes the calibration after its training slow.
_UNTRAINED = "from gnothi.lab import training; training.calibrate = lambda *_: {}; "
_TRAINED = (METRICS, HEADER, "model.safetensors")


@dataclass(frozen=True, slots=True)
class Program:
    """A command that writes ``made``, and what of it is the same at the end: ``files``, or what ``content`` reads."""

    command: str
    files: Sequence[str] = ()
    content: Callable[[Path], Any] | None = None
    start: str = _START

    def result(self) -> Any:
        if self.content is not None:
            return repr(self.content(Path("made")))
        return {name: hashlib.sha256((Path("made") / name).read_bytes()).hexdigest() for name in self.files}


def _cached(run: Path) -> Any:
    return rows_of(run)[1]


def _variants(folder: Path) -> Any:
    return [(run.name, rows_of(run)) for run in sorted(folder.iterdir())]


def _dateless(name: str) -> Callable[[Path], Any]:
    """What a header says, but for the day it was made."""

    def found(folder: Path) -> Any:
        return {key: value for key, value in json.loads((folder / name).read_text("utf-8")).items() if key != "made"}

    return found


def _vectors(_: Path) -> Any:
    from gnothi.retrieval.dense.index import DenseIndex

    found = asyncio.run(DenseIndex.open("index").search("ferry at noon", 20))
    return [(hit.passage.id, round(hit.score, 5)) for hit in found]


def _examined(folder: Path) -> Any:
    """States differ in their last digits by what else was under way."""
    lines = map(json.loads, (folder / "findings.jsonl").read_text("utf-8").splitlines())
    return [(line["question_id"], line["answer"], line["wrong"]) for line in lines], (folder / "probe.npz").is_file()


# As little as still has several steps and evaluations between which it may be stopped.
_SELF = "--set steps=4 --set questions=2 --set replies=2 --set warm_start_steps=2 --set evaluate_every=2 --set answers.n=2"
_READER = "--set steps=4 --set batch=4 --set rows=2 --set evaluate_every=2 --set k=1 --set learning_rate=1e-3"
_RERANKER = "--set learning_rate=1e-3 --set epochs=1 --set batch=16 --set evaluate_every=2"
_TINY = "--set steps=6 --set hidden=64 --set layers=2 --set heads=4 --set intermediate=16 --set rows=2 --set width=64"
PROGRAMS: Mapping[str, Program] = {
    "train self-knowledge": Program(
        f"train self-knowledge lab-train:one_hop --limit 6 {_SELF} --out made", (*_TRAINED, "answers/answers.jsonl")
    ),
    "train reader": Program(f"train reader lab-train:choice --limit 8 {_READER} --out made", _TRAINED),
    "train reranker": Program(f"train reranker lab-train:two_hop_choice --limit 6 {_RERANKER} --out made", _TRAINED),
    "train utility-reference": Program("train utility-reference lab-train --limit 8 --out made", ("labels.jsonl",)),
    "train probe": Program("train probe lab-train --limit 40 --out made", content=_examined),
    "lab train": Program(f"lab train {_TINY} --out made", ("model.safetensors",), start=_UNTRAINED + _START),
    "index embed": Program("index embed index --encoder ./encoder", content=_vectors),
    "eval with workers": Program("eval lab --method direct,rag --limit 12 --workers 2 --out made", content=rows_of),
    "eval with a cache": Program("eval lab --method cot,rag --limit 12 --cache --out made", content=_cached),
    "serve with feedback": Program("serve --port 0"),
    "calibrate --learn": Program("calibrate --learn training --out made", content=_dateless("gate.json")),
    "train complexity": Program("train complexity training --out made", content=_dateless("complexity.json")),
    "train knowledge-reference": Program(
        "train knowledge-reference training --set memory=cot --set labels=right --out made", content=_dateless("knowledge.json")
    ),
    "ablate": Program(
        "reproduce seakr lab:one_hop --limit 8 --only Perplexity --set signal.samples=3 --out made", content=_variants
    ),
    "ask of a file": Program("ask --file questions.txt --method rag --out made", content=rows_of),
}
KINDS = tuple(PROGRAMS)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    from tests.filtering.encoder import tiny_encoder

    seeds = folder / "seeds"
    docs = seeds / "docs"
    docs.mkdir(parents=True)
    for number in range(12):
        lines = "".join(f"The ferry {number} of dunmere {line} sails at noon.\n\n" for line in range(20))
        (docs / f"{number}.txt").write_text(lines, "utf-8")
    tiny_encoder(seeds / "encoder")
    (seeds / "questions.txt").write_text("".join(f"Who directed film {number}?\n" for number in range(30)), "utf-8")
    for command in (
        "index build docs --out index",
        "eval lab-train --method direct,cot,rag,ircot,cascade --limit 30 --out training",
    ):
        done = run(Program(command), seeds)
        if done.code:
            raise RuntimeError(f"{command}: {done.output}")


@dataclass(frozen=True, slots=True)
class Whole:
    """A program that nobody stopped: what it made, how many changes of files that took, and how many seconds of processors."""

    result: Any
    changes: int
    seconds: float


_whole: dict[str, Whole] = {}


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """Stopped again and again, until it is done."""
    rng = Random(f"{seed} programs {number}")
    name = rng.choice(only.split(",") if only else list(PROGRAMS))
    program, work = PROGRAMS[name], folder / "work"
    if name == "serve with feedback":
        from benchmarks._faults_served import served

        fresh(folder)
        return row(name, program.command, *served(rng, work))
    whole = undisturbed(name, folder)
    fresh(folder)
    real = rng.random() < _REAL
    tally = Tally()
    for turn in range(_TIMES):
        last = run(program, work, _draw_stop(rng, whole, real, first=turn == 0))
        tally.add(last)
        if last.how is None:
            break
    else:
        last = run(program, work)
        tally.problems += last.problems
    tally.problems += ended(program, last, whole.result)
    if real:
        tally.log.append("started by Python")
    return row(name, program.command, tally, last)


def undisturbed(name: str, folder: Path) -> Whole:
    """Measured once a process."""
    if name not in _whole:
        program, work = PROGRAMS[name], folder / "work"
        fresh(folder)
        done = run(program, work)
        if done.code:
            raise RuntimeError(f"{name}: {done.output}")
        _whole[name] = Whole(program.result(), int((work / "changes").read_text()), done.spent)
    return _whole[name]


def ended(program: Program, last: ProgramExit, expected: Any) -> list[str]:
    """What is wrong at the end of a program that nobody stopped any more."""
    if last.code:
        return [f"does not go on: exit code {last.code}: {last.output[-200:]}"]
    try:
        return [] if program.result() == expected else ["ends in something else than undisturbed"]
    except Exception as error:  # noqa: BLE001 - whatever it is, it cannot be read
        return [f"not readable: {error!r}"]


@dataclass(slots=True)
class Tally:
    """What one trial did."""

    log: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kills: int = 0
    signals: list[float] = field(default_factory=list)
    """Of Ctrl-C and SIGTERM that were heard: seconds until the end."""

    def add(self, done: ProgramExit) -> None:
        self.problems += done.problems
        if done.how is None:
            self.log.append(f"over before {done.moment}")
            return
        self.kills += done.how == signal.SIGKILL
        if done.graceful:
            self.signals.append(round(done.seconds, 2))
        self.log.append(f"{done.how.name} {done.moment}: exit code {done.code}, {done.seconds:.1f} s later")


def row(name: str, command: str, tally: Tally, last: ProgramExit) -> dict[str, Any]:
    return {
        "target": name,
        "command": command,
        "changed": tally.log,
        "faults": tally.kills + len(tally.signals),
        "kills": tally.kills,
        "signals": tally.signals,
        "code": last.code,
        "problems": list(dict.fromkeys(tally.problems)),
        "said": (last.output.strip().splitlines() or [""])[-1][:200],
    }


# --- programs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stop:
    """``how`` a program is stopped, and when: at its change of a file of that number, or once it spent ``after`` seconds."""

    how: signal.Signals
    change: int | None = None
    after: float = 0.0
    real: bool = False
    """The program is started by Python."""

    def __str__(self) -> str:
        return f"after {self.after:.2f} s of its own" if self.change is None else f"at change {self.change}"


def _draw_stop(rng: Random, whole: Whole, real: bool, first: bool) -> Stop:
    """At ``first`` anywhere in the whole program; later sooner, since a program that goes on has less to do."""
    how = rng.choice((*[signal.SIGKILL] * 4, signal.SIGTERM, signal.SIGINT))
    share = rng.random() if first else rng.random() ** 2
    if real or rng.random() < 0.4:
        imports = real * _IMPORTS
        before = _IDLE * whole.seconds + (0.0 if how == signal.SIGKILL else imports)
        return Stop(how, None, before + share * (whole.seconds + imports - before), real)
    return Stop(how, 1 + int(share * whole.changes))


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """``how`` it was stopped, None where it was over before; ``graceful``: it ended as one that was asked to.

    ``seconds`` of its own from the signal to the end; ``spent`` of processors; ``problems`` of that."""

    code: int
    output: str
    how: signal.Signals | None = None
    graceful: bool = False
    moment: str = ""
    seconds: float = 0.0
    spent: float = 0.0
    problems: Sequence[str] = ()


_nursery = Nursery()


def run(program: Program, work: Path, stop: Stop | None = None, memory: int | None = None) -> ProgramExit:
    """The program, until it ends or is stopped; ``memory``: bytes that it may have more than at its beginning."""
    process = started(program.command, work, program.start, stop, memory)
    spent = 0.0
    try:
        if stop is not None and stop.change is None:
            reached = own_time.wait(lambda: _ended(process) or own_time.spent(process.pid) >= stop.after, process.pid, _LONG)
            if reached is None:
                return ProgramExit(-1, output_of(work), problems=("does not end",))
            struck = process.poll() is None
            process.send_signal(stop.how)
        else:
            struck = False

        def over() -> bool:
            nonlocal spent
            spent = max(spent, own_time.spent(process.pid))
            return _ended(process) or (not struck and _struck(work))

        while True:
            seconds = own_time.wait(over, process.pid, 10 * SECONDS if struck else _LONG)
            if seconds is None:
                name = f"{stop.how.name}: " if stop is not None and struck else ""
                return ProgramExit(-1, output_of(work), problems=(f"{name}does not end",))
            if process.poll() is not None:
                break
            struck = True
        struck = struck or _struck(work)
        code, words = process.wait(), output_of(work)
        if stop is None or not struck:
            problems = own_time.survivors(process.pid) if code == 0 else ()
            return ProgramExit(code, words, moment=str(stop), spent=spent, problems=problems)
        heard = code == 128 + stop.how
        problems = [*judged(stop.how, code, seconds, words), *own_time.survivors(process.pid)]
        return ProgramExit(
            code, words, stop.how, heard, str(stop), seconds, spent, [f"{stop.how.name}: {one}" for one in problems]
        )
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def started(
    command: str, work: Path, start: str = _START, stop: Stop | None = None, memory: int | None = None
) -> Forked | subprocess.Popen[bytes]:
    environment = os.environ | {"GNOTHI_CACHE": str(work / "cache"), "PYTHONUNBUFFERED": "1"}
    if stop is not None and stop.real:
        with (work / "said").open("wb") as told:
            command_line = [sys.executable, "-c", start, *command.split()]
            return subprocess.Popen(
                command_line,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
    given = Start(stop.change if stop else None, stop.how if stop else signal.SIGKILL, memory)
    return _nursery.start(start, command.split(), work, environment, given)


def _ended(process: Forked | subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def _struck(work: Path) -> bool:
    with contextlib.suppress(OSError):
        return (work / "struck").stat().st_size > 0
    return False


def judged(how: int, code: int, seconds: float, words: str) -> list[str]:
    problems = []
    if how != signal.SIGKILL:
        if code not in (0, 128 + how, -how if _over(words) else 0):
            problems.append(f"ends in exit code {code}")
        if code == 128 + how and "same command" not in " ".join(words.split()):
            problems.append("not said how to go on")
        if seconds > SECONDS:
            problems.append("does not end soon")
        if "Traceback (most recent" in words:
            problems.append("traceback")
        if STEERING.search(words.replace("\x1b", "").replace("\r", "")):
            problems.append("steers the terminal")
    return problems


def _over(words: str) -> bool:
    """Its results are printed: Python was about to end, and no longer hears signals itself."""
    return bool(words.strip()) and not words.rstrip().endswith("...")


def output_of(work: Path) -> str:
    return (work / "said").read_text("utf-8", "replace") if (work / "said").is_file() else ""

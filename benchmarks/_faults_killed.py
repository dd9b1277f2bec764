"""SIGKILL at random moments of a job, and two processes at one; afterwards the same command ends as if nothing had been."""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_fuzz import keep_the_library, seeds
from benchmarks._faults_trial import Outcome, call, scripted
from gnothi.cli import signals

_MODEL = ("--model", "lab", "--index", "lab")
_OUT = ("--out", "made")
_CHANGES = ("os.rename", "os.remove", "os.truncate", "os.mkdir")


@dataclass(frozen=True, slots=True)
class Job:
    """A ``command`` that writes ``made``; ``look`` reads what a killed one left; ``content`` is the same at the end."""

    command: tuple[str, ...]
    look: tuple[str, ...]
    content: Callable[[], Any]


def _passages() -> Any:
    from gnothi.retrieval.bm25 import BM25Index

    found = sorted((one.id, one.title, one.text) for one in BM25Index.open("made").passages())
    assert len(found) == len(set(found))
    return found


def _graph() -> Any:
    from gnothi.graph.graph import open_folder, read_manifest

    open_folder("made")
    manifest = read_manifest(Path("made"))
    return manifest.facts, manifest.nodes, manifest.content


def _rows() -> Any:
    return rows_of(Path("made"))


def rows_of(run: Path) -> Any:
    """Lines, and what is in them that is the same whenever a run was made."""
    from gnothi.runs.folder import read_events, read_rows

    rows = list(read_rows(run))
    lines = (run / "rows.jsonl").read_bytes().count(b"\n")
    events = read_events(run, [row.key for row in rows])
    return lines, [(row.comparable(), len(events.get(row.key, ()))) for row in rows]


def _calibration() -> Any:
    import tomllib

    found = tomllib.loads(Path("made").read_text("utf-8"))
    return {key: value for key, value in found.items() if key not in ("made", "day", "created")}


JOBS: Mapping[str, Job] = {
    "index": Job(("index", "build", "docs", *_OUT), ("index", "search", "made", "heron"), _passages),
    "graph": Job(("index", "build", "triples", "--graph", *_OUT), ("index", "info", "made"), _graph),
    "eval": Job(("eval", "sets/plain.jsonl", "--method", "direct,rag,seakr", *_MODEL, *_OUT), ("report", "made"), _rows),
    "calibrate": Job(
        ("calibrate", "sets/plain.jsonl", "--method", "seakr", *_MODEL, *_OUT),
        ("ask", "Who?", "--method", "seakr", *_MODEL, "--calibration", "made"),
        _calibration,
    ),
    "export": Job(("export", "run", "--to", "jsonl", "--out", "made"), ("list", "methods"), lambda: Path("made").read_bytes()),
}


@dataclass(slots=True)
class Events:
    """Changes to files that this process made; at the one numbered ``at`` it gets the ``signal``. ``unsynced``: files that took
    another's place before they were on the disk."""

    at: int = -1
    signal: int = signal.SIGKILL
    count: int = 0
    on: bool = False
    synced: set[int] = field(default_factory=set)
    unsynced: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writes and event not in _CHANGES:
            return
        if event == "os.rename" and os.path.isfile(arguments[0]):
            about = os.stat(arguments[0])
            if about.st_size and about.st_ino not in self.synced:
                self.unsynced.append(os.path.basename(os.fsdecode(arguments[1])))
        self.count += 1
        if self.count == self.at:
            self.strike()

    def strike(self) -> None:
        os.kill(os.getpid(), self.signal)


UNREADABLE = "not readable"
EVENTS = Events()
_expected: dict[str, tuple[Any, int, float]] = {}
KINDS = tuple(JOBS)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    import matplotlib.pyplot  # noqa: F401

    from gnothi.retrieval import build

    build._COMMIT_BYTES = 200  # several commits, between which a kill may fall
    keep_the_library()
    seeds(folder / "seeds", heavy=False)
    _import_all(folder)
    sys.addaudithook(EVENTS)


def _import_all(folder: Path) -> None:
    """What the commands import, they import here: forked processes have it then, and a trial takes a third of the time."""
    for job in JOBS.values():
        fresh(folder)
        with scripted():
            for command in (job.command, job.look):
                if (found := call(command)).code:
                    raise RuntimeError(f"{command} on unchanged files: {found}")


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    rng = Random(f"{seed} killed {number}")
    name = only or rng.choice(list(JOBS))
    job = JOBS[name]
    expected, events, seconds = undisturbed(name, folder)
    fresh(folder)
    problems: list[str] = []
    done: list[str] = []
    if rng.random() < 0.15 and name != "export":
        at = rng.randint(1, events)
        done.append(f"a second one beside it at change {at} of {events}")
        problems += _beside(job, at, held=at > events * 5 // 8)
    else:
        for _ in range(rng.choice((1, 1, 2, 4))):
            by_time = rng.random() < 0.4
            at, after = rng.randint(1, events), rng.uniform(0, seconds)
            done.append(f"killed after {after:.3f} s" if by_time else f"killed at change {at} of {events}")
            pid, pipe = _start(job.command, partial(_arm, -1 if by_time else at))
            if by_time:
                time.sleep(after)
                os.kill(pid, signal.SIGKILL)
            _end(pid, pipe)
            looked = run(job.look)
            problems += looked.problems
    last = run(job.command)
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}")
    elif not same(job, expected):
        problems.append("ends in something else than undisturbed")
    return row(name, job, done, last, problems, len(done))


def row(name: str, job: Job, done: list[str], last: Outcome, problems: list[str], faults: int = 0) -> dict[str, Any]:
    """``faults``: how often it was killed, asked to end, or met a fault."""
    said = (last.err.strip().splitlines() or [""])[-1][:200]
    return {
        "target": name,
        "command": " ".join(job.command),
        "changed": done,
        "faults": faults,
        "code": last.code,
        "problems": list(dict.fromkeys(problems)),
        "said": said,
    }


def undisturbed(name: str, folder: Path) -> tuple[Any, int, float]:
    if name not in _expected:
        fresh(folder)
        began = time.monotonic()
        done = run(JOBS[name].command)
        seconds = time.monotonic() - began
        if done.code:
            raise RuntimeError(f"{name}: {done}")
        _expected[name] = content(JOBS[name]), int(done.out.rpartition("\n")[2]), seconds
    return _expected[name]


def fresh(folder: Path) -> None:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "seeds", work, symlinks=True)
    os.chdir(work)


def _beside(job: Job, at: int, held: bool) -> list[str]:
    """The job is stopped in the midst of its work, and another begun. Where the first has its lock by then (``held``) the other
    is refused; before that both work, or one is refused."""
    pid, pipe = _start(job.command, lambda: _arm(at, signal.SIGSTOP))
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        os.close(pipe)
        return []
    second = run(job.command)
    os.kill(pid, signal.SIGCONT)
    first = _end(pid, pipe)
    problems = [*second.problems, *(first.problems if first else ())]
    if second.code == 0 and held:
        problems.append("two at once: the second was not refused")
    if first is None or first.code:
        problems.append("two at once: the first fails")
    return problems


# --- processes -----------------------------------------------------------------------------------------------------------


def _arm(at: int, what: int = signal.SIGKILL) -> None:
    EVENTS.at, EVENTS.signal = at, what


def _start(command: tuple[str, ...], first: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """A forked process that runs the command after ``first``; its outcome comes through the pipe."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    code = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where the campaign itself runs in the background
    try:
        os.close(read)
        _note_syncs()
        first()
        EVENTS.on = True
        with scripted():
            found = call(command)
        EVENTS.on = False
        late = tuple(f"takes a place before it is on the disk: {name}" for name in dict.fromkeys(EVENTS.unsynced))
        late = late if command[0] not in ("export", "report") else ()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(
                Outcome(signals.exit_code(found.code), f"{found.out}\n{EVENTS.count}", found.err, found.problems + late), pipe
            )
        code = 0
    finally:
        os._exit(code)


def _note_syncs() -> None:
    real = os.fsync

    def fsync(file: Any) -> None:
        real(file)
        EVENTS.synced.add(os.fstat(file if isinstance(file, int) else file.fileno()).st_ino)

    vars(os)["fsync"] = fsync


def _end(pid: int, pipe: int) -> Outcome | None:
    """None where the process was killed before it could tell."""
    with os.fdopen(pipe, "rb") as told:
        content = told.read()
    os.waitpid(pid, 0)
    return pickle.loads(content) if content else None


def run(command: tuple[str, ...], first: Callable[[], None] = lambda: None) -> Outcome:
    return _end(*_start(command, first)) or Outcome(-1, "", "", ("dies",))


def same(job: Job, expected: Any) -> bool:
    return bool((found := content(job)) == expected != UNREADABLE and found)


def content(job: Job) -> Any:
    """Read in a process of its own, so that this one stays without threads."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(repr(job.content()), pipe)
        except BaseException as error:  # noqa: BLE001 - unequal to what is expected
            with os.fdopen(os.dup(2), "w") as say:
                say.write(repr(error))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        content = told.read()
    os.waitpid(pid, 0)
    return pickle.loads(content) if content else UNREADABLE

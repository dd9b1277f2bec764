"""A faulting world: a disk that is full or may not be written to, handles or memory that run out, a clock that jumps. The job
goes on where it was."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_killed as killed
from benchmarks._faults_trial import Outcome, patience
from benchmarks._shared import say

_LARGEST: dict[str, int] = {}
"""Bytes of the largest file that a job makes."""
_TAKEN: dict[str, int] = {}
"""Bytes that a job takes of a disk, its files' last blocks whole."""
_FRAME = re.compile(r'/(\w+\.py", line \d+ in \w+)')
_WAITS, _HANGS = "waits", 12.0
"""The file that tells where a command waits with little memory, after so many seconds (of a machine that has a core for it)."""
_NEW_MOUNTS = 0x00020000
_DISK_MB = 32
_DISKS = ("small disk", "read-only folder")


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


def _memory(rng: Random, _: int) -> Callable[[], None]:
    spare = int(2 ** rng.uniform(16, 26.5))

    def limit() -> None:
        faulthandler.dump_traceback_later(patience(_HANGS), exit=True, file=open(_WAITS, "w"))  # noqa: SIM115
        taken = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_DATA, (taken + spare, resource.getrlimit(resource.RLIMIT_DATA)[1]))

    return limit


def _hung() -> list[str]:
    """Where a command with little memory still was when it was ended for it. A thread that finds no memory at its very first
    steps leaves Python waiting for it for ever: that is Python's, and as good as killed."""
    told = Path(_WAITS).read_text("utf-8") if Path(_WAITS).exists() else ""
    if not told or re.search(r'/threading\.py", line \d+ in start$', told, re.MULTILINE):
        return []
    return [f"hangs: {' < '.join(_FRAME.findall(told)[:6])}"]


def _clock(rng: Random, _: int) -> Callable[[], None]:
    real, far = time.time, 10 ** rng.randint(3, 9)

    def jump() -> None:
        time.time = lambda: real() + rng.uniform(-far, far)

    return jump


FAULTS: Mapping[str, Callable[[Random, int], Callable[[], None]]] = {
    "full disk": _full,
    "no handles": _handles,
    "little memory": _memory,
    "clock": _clock,
}
_faults = list(FAULTS)
KINDS = (*FAULTS, *_DISKS)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:
    killed.prepare(folder, only)
    disk = folder / "disk"
    disk.mkdir()
    # Mounts of this process alone: they are gone when it ends, however it does.
    done = ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS)
    if done == 0 and _mount("--make-rprivate", "/") and _mount("-t", "tmpfs", "-o", f"size={_DISK_MB}m", "none", str(disk)):
        _faults.extend(_DISKS)
    elif only in _DISKS:
        raise RuntimeError(f"{only}: needs the right to mount file systems")
    else:
        say(f"{' and '.join(_DISKS)} are left out: no right to mount file systems")


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """A job under a fault, once or twice, then again without."""
    rng = Random(f"{seed} world {number}")
    fault, _, name = only.partition(": ")
    fault, name = fault or rng.choice(_faults), name or rng.choice(list(killed.JOBS))
    job = killed.JOBS[name]
    expected, events, _ = killed.undisturbed(name, folder)
    if name not in _LARGEST:  # it was just made
        _LARGEST[name] = max(one.stat().st_size for one in (Path("made"), *Path("made").rglob("*")) if one.is_file())
    problems: list[str] = []
    times = rng.choice((1, 1, 2))
    told = [fault] * times
    if fault in _DISKS:
        _on_the_disk(name, folder)
    else:
        killed.fresh(folder)
    for turn in range(times):
        if fault == "small disk":
            found = _in_little_room(job, folder / "disk", int(rng.uniform(0, _TAKEN[name])))
        elif fault == "read-only folder":
            if rng.random() < 0.5:  # half of it is there already
                killed.run(job.command, partial(killed._arm, rng.randint(1, events)))
            found = _unwritable(job, folder / "disk")
        else:
            found = killed.run(job.command, FAULTS[fault](rng, _LARGEST[name]))
        ended = fault == "little memory" and "dies" in found.problems
        if ended:  # libraries in other languages end the process where they get no memory: as good as killed
            told[turn] += ", which ends the process"
        problems += _hung() if ended else found.problems
        if found.code == 0 and not killed.same(job, expected):
            problems.append("says it is done, and is not")
        problems += killed.run(job.look).problems
    last = killed.run(job.command)
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}")
    elif not killed.same(job, expected):
        problems.append("ends in something else than undisturbed")
    return {**killed.row(name, job, told, last, problems, times), "target": f"{fault}: {name}"}


# --- disks ---------------------------------------------------------------------------------------------------------------


def _on_the_disk(name: str, folder: Path) -> None:
    """The seeds on a small file system of their own, which is worked in."""
    if name not in _TAKEN:
        _copy(folder)
        before = _free(folder / "disk")
        killed.run(killed.JOBS[name].command)
        _TAKEN[name] = before - _free(folder / "disk")
    _copy(folder)


def _copy(folder: Path) -> None:
    work = folder / "disk" / "work"
    os.chdir(folder)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "seeds", work, symlinks=True)
    os.chdir(work)


def _free(disk: Path) -> int:
    about = os.statvfs(disk)
    return about.f_bavail * about.f_frsize


def _in_little_room(job: killed.Job, disk: Path, spare: int) -> Outcome:
    """Of the disk no more than ``spare`` bytes are left."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, _free(disk) - spare))
    try:
        return killed.run(job.command)
    finally:
        ballast.unlink()


def _unwritable(job: killed.Job, disk: Path) -> Outcome:
    if not _mount("-o", "remount,ro", str(disk)):
        raise RuntimeError("the disk cannot be made read-only: something is still writing to it")
    try:
        found = killed.run(job.command)
        problems = (*found.problems, *(() if found.code else ("writes what it may not",)), *killed.run(job.look).problems)
        return Outcome(found.code, found.out, found.err, problems)
    finally:
        _mount("-o", "remount,rw", str(disk))

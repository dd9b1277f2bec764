"""Readers of untrusted files in a process of their own, under limits of memory and of processor time.

What libraries in C make of a hostile file (endless streams, bombs, crashes) ends that process alone, and the file is refused.
The process is kept for the next file. Where the system knows no such limits (Windows) only crashes are kept apart.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gnothi.retrieval.ingest.base import Block, Unreadable

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MEMORY = 512 << 20
"""Bytes of address space."""
SECONDS = 8
"""Of processor time from one block to the next, and for a small file in all."""
_BYTES_A_SECOND = 50_000  # a file gets a second more for so many: the slowest of honest ones take a fifth of it
_START = "import sys; sys.path[:] = {path!r}; from gnothi.retrieval.ingest.bounded import serve; serve()"


def blocks(module: str, path: Path) -> Iterator[Block]:
    """What ``blocks(path)`` of the module gives, read in the other process.

    Raises Unreadable as it does, and where the file needs more than ``MEMORY`` or ``SECONDS``, or ends the process.
    """
    worker = _taken()
    try:
        yield from worker.blocks(module, path)
    except Unreadable:
        raise
    except BaseException:
        worker.kill()  # in the middle of a file
        raise
    finally:
        worker.give_back()


class _Worker:
    def __init__(self) -> None:
        self.owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Threads of number crunchers would each reserve memory; none is used.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        )

    def blocks(self, module: str, path: Path) -> Iterator[Block]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: seen below
            self._process.stdin.write(json.dumps([module, os.fsencode(path).hex(), MEMORY, SECONDS]).encode() + b"\n")
            self._process.stdin.flush()
        while line := self._process.stdout.readline():
            kind, value = json.loads(line)
            if kind == "block":
                yield Block(**value)
            elif kind == "unreadable":
                raise Unreadable(value)
            else:
                return
        raise Unreadable(self._why_it_ended(path))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def give_back(self) -> None:
        if self.alive and not _idle:
            _idle.append(self)
        else:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        with self._process:  # closes its pipes and waits for its end
            pass

    def _why_it_ended(self, path: Path) -> str:
        ended = self._process.wait()
        if ended == -getattr(signal, "SIGXCPU", 0):
            return f"{path} is refused: a part of it takes more than {SECONDS} s to read. Leave it out, or save it anew."
        return (
            f"{path} is refused: to read it takes more than {MEMORY >> 20} MB, or breaks the reader (exit code {ended}). "
            "Leave it out, or save it anew."
        )


_idle: list[_Worker] = []


def _taken() -> _Worker:
    """The worker that is idle, else a new one."""
    with contextlib.suppress(IndexError):
        worker = _idle.pop()
        if worker.owner == os.getpid() and worker.alive:
            return worker
        if worker.owner == os.getpid():
            worker.kill()
    return _Worker()


@atexit.register
def _end() -> None:
    while _idle:
        if (worker := _idle.pop()).owner == os.getpid():
            worker.kill()


def serve() -> None:
    """The other process: reads the files it is told of until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks; this one ends with it
    _limit("RLIMIT_CORE", 0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer

    def say(kind: str, value: object = None) -> None:
        answers.write(json.dumps([kind, value]).encode() + b"\n")
        answers.flush()

    for line in sys.stdin.buffer:
        module, name, memory, seconds = json.loads(line)
        path = Path(os.fsdecode(bytes.fromhex(name)))
        try:
            _read(module, path, memory, seconds, say)
        except Unreadable as error:
            say("unreadable", error.message)
        except MemoryError:
            say(
                "unreadable", f"{path} is refused: to read it takes more than {memory >> 20} MB. Leave it out, or save it anew."
            )
        except Exception as error:  # noqa: BLE001 - a damaged file makes libraries raise anything
            say("unreadable", f"{path} cannot be read: {error}. Leave it out, or save it anew.")
        else:
            say("end")


def _read(module: str, path: Path, memory: int, seconds: int, say: Callable[[str, Any], None]) -> None:
    blocks = importlib.import_module(module).blocks(path)
    last = time.process_time() + seconds + path.stat().st_size / _BYTES_A_SECOND
    _limit("RLIMIT_AS", memory)
    while True:
        _limit("RLIMIT_CPU", int(min(time.process_time() + seconds, last)) + 1)
        block = next(blocks, None)
        if block is None:
            return
        say("block", asdict(block))


def _limit(kind: str, value: int) -> None:
    """A soft limit, as far as the system has it."""
    if resource is not None and hasattr(resource, kind):
        with contextlib.suppress(ValueError, OSError):
            hard = resource.getrlimit(getattr(resource, kind))[1]
            resource.setrlimit(getattr(resource, kind), (value if hard < 0 else min(value, hard), hard))

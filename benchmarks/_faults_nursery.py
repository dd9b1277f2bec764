"""Programs that begin with their imports done, forked from a process that did them once: most of a short command's time."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from benchmarks._faults_killed import Events

NOTES = ("said", "changes", "struck")
_IMPORTED = (
    "gnothi.cli.main",
    "gnothi.cli.ask",
    "gnothi.cli.evaluate",
    "gnothi.cli.train",
    "gnothi.cli.lab",
    "gnothi.cli.index",
    "gnothi.models.transformers",
    "gnothi.report.document",
    "gnothi.lab.initialisation",
    "gnothi.retrieval.dense.index",
    "gnothi.training.reader.job",
    "gnothi.training.reader.trainers",
    "gnothi.training.reranker.job",
    "gnothi.training.self_knowledge.job",
    "gnothi.training.self_knowledge.grpo",
    "gnothi.training.probe.job",
    "gnothi.training.utility_reference",
    "torch",
    "transformers.models.llama.modeling_llama",
    "accelerate",
    "datasets",
    "peft",
    "trl",
    "matplotlib.pyplot",
    "sentence_transformers",
    "safetensors.torch",
    "sklearn.linear_model",
    "scipy.stats",
    "httpx2",
    "starlette.applications",
    "uvicorn",
    "tantivy",
)
"""None of them starts a thread, which a fork would lose: it is looked at."""

_NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Of Arrow, whose allocator has one."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a program begins. At its change of a file numbered ``change`` it sends itself ``how`` and notes when; it may have
    ``bytes`` of memory more than it begins with."""

    change: int | None = None
    how: int = signal.SIGKILL
    bytes: int | None = None


class Nursery:
    """Where programs come from: a process of its own, begun when it is first needed, which imports ``modules`` once."""

    def __init__(self, modules: Sequence[str] = _IMPORTED) -> None:
        self._modules = tuple(modules)
        self._process: subprocess.Popen[str] | None = None

    def start(
        self, code: str, arguments: list[str], work: Path, environment: Mapping[str, str], start: Start | None = None
    ) -> Program:
        """``code`` as by ``python -c``, in ``work``, in a session of its own. What it prints goes to ``said`` there, its count
        of changes to ``changes`` when it ends, and the moment of its signal to ``struck``. These are no changes."""
        for name in NOTES:
            (work / name).unlink(missing_ok=True)
        given = {"code": code, "arguments": arguments, "work": str(work), "environment": dict(environment)}
        return Program(self, int(self.ask(given | {"start": asdict(start or Start())})))

    def ask(self, given: Any) -> Any:
        if self._process is None:
            command = [sys.executable, "-m", "benchmarks._faults_nursery", *self._modules]
            self._process = subprocess.Popen(
                command, env=os.environ | _NO_THREAD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """It ends when nobody can give it orders any more."""
        if self._process is not None:
            self._process.communicate()


class Program:
    """As much of ``subprocess.Popen`` as a trial needs."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked program", timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _wait_for_orders(modules: Sequence[str]) -> None:
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if (threads := len(list(Path("/proc/self/task").iterdir()))) != 1:
        raise RuntimeError(f"{threads} threads after the imports, expected one: take out of the list what starts them")
    from gnothi.lab import worlds

    _ = worlds.find("").fingerprint
    gc.freeze()  # otherwise each program would look through all that was imported, and have it copied
    for line in sys.stdin:
        given = json.loads(line)
        if "poll" in given:
            pid, status = os.waitpid(given["poll"], os.WNOHANG)
            told = os.waitstatus_to_exitcode(status) if pid else None
        elif not (told := os.fork()):
            _be(given)
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def _be(given: Mapping[str, Any]) -> NoReturn:
    """In the child: end as a program that Python was started for ends, threads and all."""
    os.setsid()
    os.chdir(given["work"])
    os.environ.clear()
    os.environ.update(given["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(nothing, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.argv = ["-c", *given["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _arm(Start(**given["start"]))
    # Raising ends the interpreter in the usual way: what runs at exit runs, and threads are waited for.
    exec(given["code"], {"__name__": "__main__"})
    sys.exit(0)


def _arm(start: Start) -> None:
    notes = {name: os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) for name in ("changes", "struck")}
    events = Noting(notes["struck"], start)
    sys.addaudithook(events)
    atexit.register(lambda: os.write(notes["changes"], str(events.count).encode()))
    if start.bytes is not None:
        taken = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_DATA, (taken + start.bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    events.on = True


class Noting(Events):
    """``Events`` that note the moment of the signal."""

    def __init__(self, note: int, start: Start) -> None:
        super().__init__(-1 if start.change is None else start.change, start.how)
        self._note = note

    def strike(self) -> None:
        os.write(self._note, str(time.monotonic()).encode())
        super().strike()


if __name__ == "__main__":
    _wait_for_orders(sys.argv[1:])

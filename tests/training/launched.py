"""Two processes that train one model on a CPU, without starting Python twice for it: what a launcher sets is set, and they are
forked from a server that has loaded the libraries."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from gnothi.runs.journal import Journal
from gnothi.training.finetuning import HEADER, METRICS
from tests.ports import held_port
from tests.training.killing import assert_same, preloaded

Training = Callable[[Path], object]
PROCESSES = 2
LIMIT = 200
"""Seconds that a training may take."""


def killed_and_undisturbed(folder: Path, train: Training, lines: int, same: tuple[str, ...]) -> None:
    """``train`` into ``undisturbed`` and ``killed`` in ``folder``, by two processes each; the second is killed after so many
    ``lines`` of metrics and started again. They have to end in the ``same`` files."""
    context = preloaded()
    run(context, train, folder / "undisturbed")
    killed = folder / "killed"
    run(context, train, killed, lines)
    assert not (killed / HEADER).exists()
    run(context, train, killed)
    assert_same(folder, same)


def run(context: ForkServerContext, train: Training, out: Path, lines: int | None = None) -> None:
    """Where ``lines`` says after how many lines of metrics, they are killed on the way to the next: the first process stands
    there until it is let go on, and again after the next line."""
    out.mkdir(exist_ok=True)
    room = None if lines is None else context.Semaphore(lines - 1)
    with held_port() as port:
        started = [context.Process(target=_one, args=(train, out, rank, port, room)) for rank in range(PROCESSES)]
        for process in started:
            process.start()
        file, until = out / METRICS, time.monotonic() + LIMIT
        try:
            while any(process.is_alive() for process in started):
                failed = [process.exitcode for process in started if process.exitcode]
                assert not failed, "a process failed"
                assert time.monotonic() < until, "they wait for each other"
                if room is not None and file.exists() and file.read_bytes().count(b"\n") == lines:
                    room.release()
                    time.sleep(random.Random(lines).random() * 0.1)
                    return
                time.sleep(0.005)
            assert lines is None, "it ended before it was killed"
            assert [process.exitcode for process in started] == [0] * PROCESSES
        finally:
            for process in started:
                process.kill()
                process.join()


def _one(train: Training, out: Path, rank: int, port: int, room: Any) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(PROCESSES), "LOCAL_WORLD_SIZE": str(PROCESSES),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true",
    }  # fmt: skip
    import torch

    torch.set_num_threads(1)
    if room is not None:
        _standing(room)
    train(out)


def _standing(room: Any) -> None:
    """A line of metrics is kept, and then there has to be room for it."""
    append = Journal.append

    def kept(journal: Journal, data: Mapping[str, Any]) -> None:
        append(journal, data)
        if journal.path.name == METRICS:
            room.acquire()

    Journal.append = kept  # type: ignore[method-assign,assignment]

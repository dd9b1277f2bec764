"""Two processes that train one model on a CPU, without starting Python twice for it: what a launcher sets is set, and they are
forked from a server that has loaded the libraries."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from gnothi.runs.journal import Journal
from gnothi.training.curve import Curve
from gnothi.training.finetuning import HEADER, METRICS
from tests.patience import PATIENCE
from tests.ports import held_port

LIBRARIES = [
    "gnothi.cli.main",
    "gnothi.models.transformers",
    "gnothi.session.sources",
    "gnothi.training.reader.trainers",
    "peft",
    "sentence_transformers",
    "trl.trainer.grpo_trainer",
]


def preloaded() -> ForkServerContext:
    """Its processes are forked from one that has loaded what any training needs. Those that are not installed are left out."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


def _begin() -> None:
    """In such a process: without a look through all that it begins with at each collection, and without pictures."""
    gc.freeze()
    import torch

    torch.set_num_threads(1)
    Curve.draw = lambda _: None  # type: ignore[method-assign,assignment]


def command_killed_and_undisturbed(
    folder: Path,
    command: Sequence[str],
    settings: Iterable[str],
    moments: Iterable[int],
    counted: Sequence[str] = (METRICS,),
) -> None:
    """Run ``gnothi train COMMAND`` into ``killed`` and ``undisturbed`` in ``folder``; the first is killed soon after there are
    so many lines in the files ``counted`` as each of the ``moments`` says."""
    context = preloaded()
    program = ["train", *command, *(part for setting in settings for part in ("--set", setting))]
    files = [folder / "killed" / name for name in counted]

    def lines() -> int:
        return sum(file.read_bytes().count(b"\n") for file in files if file.exists())

    random_ = random.Random(0)
    for wanted in moments:
        training = _Training(context, [*program, "--out", str(folder / "killed")])
        while lines() < wanted:
            training.go_on()
        training.kill(random_.random() * 0.2)
    assert not (folder / "killed" / HEADER).exists()
    for name in ("killed", "undisturbed"):
        _Training(context, [*program, "--out", str(folder / name)]).finish()


def command(*arguments: str) -> None:
    """``gnothi ARGUMENTS``, to its end."""
    _Training(preloaded(), arguments).finish()


def killed_three_times(
    folder: Path, command: Sequence[str], settings: Iterable[str], last: int, files: Iterable[str] = ()
) -> None:
    """Of a training with an adapter: its files, and the adapter of its best checkpoint, are those of an undisturbed one. The
    kills fall on up to ``last`` lines."""
    moments = sorted(random.Random(0).sample(range(1, last + 1), 3))
    command_killed_and_undisturbed(folder, command, settings, moments)
    assert_same(folder, (METRICS, HEADER, "model.safetensors", "gnothi.json", *files))
    best = json.loads((folder / "killed" / HEADER).read_text())["best_step"]
    assert_same(folder, [Path("checkpoints") / f"checkpoint-{best}" / "adapter_model.safetensors"])


class _Training:
    """A process that stands after each line that it keeps."""

    def __init__(self, context: ForkServerContext, arguments: Sequence[str]) -> None:
        self._stands, self._may_go = context.Semaphore(0), context.Semaphore(0)
        self._process = context.Process(target=_program, args=(arguments, self._stands, self._may_go))
        self._process.start()
        self._stood = False

    def go_on(self) -> None:
        """To its next line."""
        if self._stood:
            self._may_go.release()
        until = time.monotonic() + PATIENCE
        while not self._stands.acquire(timeout=0.1):
            assert self._process.is_alive(), "it ended before it could be killed"
            assert time.monotonic() < until, "it keeps no line"
        self._stood = True

    def kill(self, seconds: float) -> None:
        """So long after it went on: on the way to its next line, or there."""
        self._may_go.release()
        time.sleep(seconds)
        self._process.kill()
        self._process.join()

    def finish(self) -> None:
        for _ in range(10_000):  # more lines than any training keeps
            self._may_go.release()
        self._process.join(PATIENCE)
        assert self._process.exitcode == 0


def _program(arguments: Sequence[str], stands: Any, may_go: Any) -> None:
    append = Journal.append

    def kept(journal: Journal, data: Mapping[str, Any]) -> None:
        append(journal, data)
        stands.release()
        may_go.acquire()

    Journal.append = kept  # type: ignore[method-assign,assignment]
    from gnothi.cli.main import main

    _begin()
    main(list(arguments))


def assert_same(folder: Path, names: Iterable[str | Path]) -> None:
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes(), name


Training = Callable[[Path], object]
PROCESSES = 2
LIMIT = 200
"""Seconds that a training may take."""


def killed_and_undisturbed(folder: Path, train: Training, lines: int, same: tuple[str, ...]) -> None:
    """``train`` into ``undisturbed`` and ``killed`` in ``folder``, by two processes each; the second is killed after so many
    ``lines`` of metrics and started again. They have to end in the ``same`` files."""
    run(preloaded(), train, folder / "undisturbed")
    killed_as_undisturbed(folder, train, lines, same)


def killed_as_undisturbed(folder: Path, train: Training, lines: int, same: tuple[str, ...]) -> None:
    """As ``killed_and_undisturbed``, where ``undisturbed`` is there."""
    context, killed = preloaded(), folder / "killed"
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
    _begin()
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

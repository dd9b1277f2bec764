"""A training that is killed three times, and one that is left alone: they have to end in the same bytes. All are forked from a
process that has loaded the libraries."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from gnothi.runs.journal import Journal
from gnothi.training.finetuning import HEADER, METRICS
from tests.patience import PATIENCE

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


def killed_and_undisturbed(
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
    import torch

    from gnothi.cli.main import main

    torch.set_num_threads(1)
    main(list(arguments))


def assert_same(folder: Path, names: Iterable[str | Path]) -> None:
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes(), name

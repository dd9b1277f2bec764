"""A training that is killed three times, and one that is left alone: they have to end in the same bytes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from gnothi.training.finetuning import HEADER, METRICS
from tests.stopping import Stopping


def killed_and_undisturbed(
    folder: Path, command: Sequence[str], settings: Iterable[str], moments: Iterable[int], counted: Sequence[str] = (METRICS,)
) -> None:
    """Run ``gnothi train COMMAND`` into ``killed`` and ``undisturbed`` in ``folder``; the first is killed soon after there are
    so many lines in the files ``counted`` as each of the ``moments`` says."""
    program = ["tests.stopping_command", "train", *command]
    program += [part for setting in settings for part in ("--set", setting)]
    files = [folder / "killed" / name for name in counted]

    def lines() -> int:
        return sum(file.read_bytes().count(b"\n") for file in files if file.exists())

    random_ = random.Random(0)
    for wanted in moments:
        process = Stopping(*program, "--out", str(folder / "killed"), OMP_NUM_THREADS="1")
        while lines() < wanted:
            assert process.go(1), "it ended before it could be killed"
        process.kill(random_.random() * 0.2)
    assert not (folder / "killed" / HEADER).exists()
    for name in ("killed", "undisturbed"):
        Stopping(*program, "--out", str(folder / name), OMP_NUM_THREADS="1").finish()


def assert_same(folder: Path, names: Iterable[str | Path]) -> None:
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes(), name

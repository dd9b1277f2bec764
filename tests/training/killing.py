"""A training that is killed three times, and one that is left alone: they have to end in the same bytes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from gnothi.training.finetuning import HEADER, METRICS

ROOT = Path(__file__).resolve().parents[2]


def killed_and_undisturbed(
    folder: Path, command: Sequence[str], settings: Iterable[str], moments: Iterable[int], counted: Sequence[str] = (METRICS,)
) -> None:
    """Run ``gnothi train COMMAND`` into ``killed`` and ``undisturbed`` in ``folder``; the first is killed soon after there are
    so many lines in the files ``counted`` as each of the ``moments`` says."""
    program = [sys.executable, "-m", "gnothi", "train", *command]
    program += [part for setting in settings for part in ("--set", setting)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def lines() -> int:
        files = [folder / "killed" / name for name in counted]
        return sum(file.read_bytes().count(b"\n") for file in files if file.exists())

    random_ = random.Random(0)
    for wanted in moments:
        process = subprocess.Popen([*program, "--out", str(folder / "killed")], env=environment, cwd=ROOT)
        while process.poll() is None and lines() < wanted:
            time.sleep(0.005)
        time.sleep(random_.random() * 0.2)
        process.kill()
        process.wait()
    assert not (folder / "killed" / HEADER).exists()
    for name in ("killed", "undisturbed"):
        subprocess.run([*program, "--out", str(folder / name)], env=environment, cwd=ROOT, check=True)


def assert_same(folder: Path, names: Iterable[str | Path]) -> None:
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes(), name

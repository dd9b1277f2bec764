"""A build killed with SIGKILL at random moments, again and again, ends up as an undisturbed one; readers never notice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.types import Passage
from tests.retrieval.documents import contents, made_up, write_jsonl

KILLS = 6
# Small commits, so that a kill can fall before, between, inside and after them.
_BUILD = """
import sys
from gnothi.retrieval import build as module
module._COMMIT_BYTES = 60_000
print("ready", flush=True)
module.build([sys.argv[1]], sys.argv[2])
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    write_jsonl(folder / "corpus.jsonl", made_up(1, 4000))
    for i in range(40):
        (folder / f"note {i}.txt").write_text(f"Note {i}. " * 400)
    return folder


def start(source: Path, out: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(source), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors


def kill_after(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether the process was still at work."""
    time.sleep(seconds)
    working = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return working


def test_killed_builds_resume_to_the_same_index(source: Path, tmp_path: Path) -> None:
    process = start(source, tmp_path / "undisturbed")
    began = time.monotonic()
    finish(process)
    duration = time.monotonic() - began
    expected = contents(tmp_path / "undisturbed")

    rng = random.Random()
    out = tmp_path / "killed"
    kills = partial = 0
    for _ in range(10 * KILLS):
        if kills >= KILLS and partial:
            break
        if not kill_after(start(source, out), rng.uniform(0, duration / 2)):
            # Too late: there is nothing left to kill.
            shutil.rmtree(out)
            continue
        kills += 1
        if (out / "meta.json").exists():
            assert set(contents(out)) <= set(expected)
            assert len(BM25Index.open(out)) == len(contents(out))
            partial += 0 < len(contents(out)) < len(expected)
    assert kills >= 2
    assert partial >= 1
    finish(start(source, out))
    assert contents(out) == expected


def test_the_previous_index_stays_readable_while_a_killed_build_adds_to_it(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    first = write_jsonl(tmp_path / "first.jsonl", [Passage("lighthouse", "The lighthouse of Orvel stands alone.")])
    build([first], out)
    before = contents(out)
    reader = BM25Index.open(out)
    rng = random.Random()
    for _ in range(4):
        process = start(source, out)
        deadline = time.monotonic() + rng.uniform(0.05, 0.8)
        while time.monotonic() < deadline:
            assert reader.search_blocking("lighthouse of Orvel", 1)[0].passage.id == "lighthouse"
            assert BM25Index.open(out).get("lighthouse") == before["lighthouse"]
        kill_after(process, 0)
        assert contents(out).items() >= before.items()
    finish(start(source, out))
    assert reader.get("note") is None
    assert len(reader) == len(contents(out)) == len(before) + 4000 + len(list(_notes(out)))


def _notes(out: Path) -> list[str]:
    return [key for key in contents(out) if "note" in key]

"""Making vectors, killed with SIGKILL again and again, ends as it does undisturbed: the same bytes, and the same found."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.dense.store import FOLDER, Rows, read_manifest
from tests.retrieval.dense import words
from tests.retrieval.documents import made_up

KILLS = 8
# Small batches and a graph saved after each step, so that a kill can fall before, between, inside and after them.
_EMBED = """
import sys
from gnothi.retrieval.dense import embed, encoders, neighbours
from tests.retrieval.dense import words
embed.BATCH, neighbours.EXACT, neighbours._STEP, neighbours._SECONDS_BETWEEN_SAVES = 64, 1000, 200, 0.0
print("ready", flush=True)
embed.embed(sys.argv[1], encoders.Encoding("words"), encode=words.passages)
"""

pytestmark = pytest.mark.slow


def start(index: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", _EMBED, str(index)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors


def test_killed_again_and_again(tmp_path: Path) -> None:
    pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    corpus = made_up(1, 4000)
    one, other = (words.put(tmp_path / name, corpus) for name in ("undisturbed", "killed"))
    began = time.monotonic()
    finish(start(one))
    duration = time.monotonic() - began

    rng, kills, encoding, linking = random.Random(), 0, 0, 0
    for _ in range(10 * KILLS):
        process = start(other)
        time.sleep(rng.uniform(0, duration / 3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        manifest = read_manifest(other)
        if manifest is not None and manifest.content:  # too late: all was done
            break
        kills += 1
        with pytest.raises(IndexUnavailable, match=r"interrupted|no vectors"):
            DenseIndex.open(other, words.questions)
        rows = 0
        if (other / FOLDER / "rows-0.sqlite").exists():
            table = Rows(other / FOLDER, 0, read_only=False)  # a kill may leave a journal, which only a writer may roll back
            rows = len(table)
            table.close()
        encoding += 0 < rows < len(corpus)
        linking += (other / FOLDER / "neighbours-0.usearch").exists()
    assert kills >= 2
    assert encoding + linking >= 1
    finish(start(other))

    files = [path / FOLDER / "vectors-0.f32" for path in (one, other)]
    assert files[0].read_bytes() == files[1].read_bytes()
    undisturbed, killed = (DenseIndex.open(path, words.questions) for path in (one, other))
    shared = []
    for passage in corpus[::40]:
        (vector,) = words.questions([passage.text])
        found = killed.nearest(vector, 10)
        assert found[0].passage == passage
        shared.append(len(set(found) & set(undisturbed.nearest(vector, 10))) / 10)
    assert np.mean(shared) >= 0.95

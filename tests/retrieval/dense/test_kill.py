"""Making vectors, killed with SIGKILL again and again, ends as it does undisturbed: the same bytes, and the same found."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.dense.store import FOLDER, Rows
from tests.messages import refused
from tests.retrieval.dense import words
from tests.retrieval.documents import made_up
from tests.stopping import Stopping, moments

KILLS = 4
pytestmark = pytest.mark.slow


def start(index: Path) -> Stopping:
    return Stopping("tests.retrieval.dense.stopping_embed", str(index), OMP_NUM_THREADS="1")


def test_killed_again_and_again(tmp_path: Path) -> None:
    chance = random.Random(1)
    pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    corpus = made_up(1, 1500)
    one, other = (words.put(tmp_path / name, corpus) for name in ("undisturbed", "killed"))
    steps = start(one).finish()

    encoding = linking = 0
    for number in moments(steps, KILLS):
        process = start(other)
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        with refused(IndexUnavailable):
            DenseIndex.open(other, words.questions)
        rows = 0
        if (other / FOLDER / "rows-0.sqlite").exists():
            table = Rows(other / FOLDER, 0, read_only=False)  # a kill may leave a journal, which only a writer may roll back
            rows = len(table)
            table.close()
        encoding += 0 < rows < len(corpus)
        linking += (other / FOLDER / "neighbours-0.usearch").exists()
    assert encoding + linking >= 1
    start(other).finish()

    files = [path / FOLDER / "vectors-0.f32" for path in (one, other)]
    assert files[0].read_bytes() == files[1].read_bytes()
    undisturbed, killed = (DenseIndex.open(path, words.questions) for path in (one, other))
    # All but a few must be found: a lost step would lose 100.
    vectors = words.passages(corpus)
    lost = sum(killed.nearest(vector, 1)[0].passage != passage for vector, passage in zip(vectors, corpus, strict=True))
    assert lost <= len(corpus) / 100
    questions = words.questions([passage.text for passage in corpus[::15]])
    shared = [len(set(killed.nearest(vector, 10)) & set(undisturbed.nearest(vector, 10))) / 10 for vector in questions]
    assert np.mean(shared) >= 0.95

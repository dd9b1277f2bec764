"""Searching by vectors, and by words and vectors, as every retriever must; and what an index says that has none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.dense import store
from gnothi.retrieval.dense.embed import embed
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.fusion import Hybrid
from gnothi.retrieval.dense.index import DenseIndex, Neighbours
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.dense import words
from tests.retrieval.documents import made_up


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the conformance corpus, which nobody changes."""
    path = tmp_path_factory.mktemp("filled") / "index"
    words.embedded(path, CORPUS)
    return path


class TestDense(RetrieverConformance):
    lexical = False

    @pytest_asyncio.fixture
    async def retriever(self, filled: Path) -> AsyncIterator[Retriever]:
        index = DenseIndex.open(filled, words.questions)
        yield index
        await index.aclose()


class TestDenseByNeighbours(TestDense):
    @pytest.fixture(autouse=True)
    def few_are_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
        monkeypatch.setattr("gnothi.retrieval.dense.index.EXACT", 0)


class TestHybrid(RetrieverConformance):
    lexical = False

    @pytest_asyncio.fixture
    async def retriever(self, filled: Path) -> AsyncIterator[Retriever]:
        hybrid = Hybrid(BM25Index.open(filled), DenseIndex.open(filled, words.questions), "hybrid")
        yield hybrid
        await hybrid.aclose()


def test_equals_comparing_all_with_ties_by_id(tmp_path: Path) -> None:
    corpus = made_up(1, 300, words=4) + [Passage(f"copy {n}", "bal bal") for n in range(60)]
    words.embedded(tmp_path, corpus)
    index = DenseIndex.open(tmp_path, words.questions)
    every = words.passages(corpus)
    for query in ("bal", "bal bal dam", corpus[3].text):
        (vector,) = words.questions([query])
        scores = np.round((every @ vector).astype(np.float64), 5)
        expected = sorted(zip(-scores, (one.id for one in corpus), strict=True))
        for k in (1, 10, 59, 360):
            assert [(-one.score, one.passage.id) for one in index.nearest(vector, k)] == expected[:k]


def test_neighbours_find_what_comparing_all_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    monkeypatch.setattr("gnothi.retrieval.dense.index.EXACT", 1000)
    corpus = made_up(1, 1500, words=6)
    words.embedded(tmp_path, corpus)
    exact = DenseIndex.open(tmp_path, words.questions)
    assert exact._neighbours is not None
    near = {one.id: exact.nearest(words.questions([one.text])[0], 10) for one in corpus[::100]}
    exact._neighbours = None
    assert all(exact.nearest(words.questions([one.text])[0], 10)[0].passage == one for one in corpus[::100])
    shared = [
        len(set(found) & set(exact.nearest(words.questions([one.text])[0], 10))) / 10
        for one in corpus[::100]
        for found in [near[one.id]]
    ]
    assert sum(shared) / len(shared) >= 0.95


def test_vectors_added_after_the_graph_was_made_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    monkeypatch.setattr("gnothi.retrieval.dense.index.EXACT", 100)
    words.embedded(tmp_path, made_up(1, 200))
    words.embedded(tmp_path, [Passage("late", "salted plums")], gone=["s1-0"])
    manifest = store.read_manifest(tmp_path)
    assert manifest is not None
    graph = Neighbours.open(tmp_path / store.FOLDER, manifest)
    assert graph is not None
    assert len(graph._graph) == 200
    index = DenseIndex.open(tmp_path, words.questions)
    assert asyncio.run(index.search("salted plums", 1))[0].passage.id == "late"
    assert "s1-0" not in {one.passage.id for one in index.nearest(words.questions(["bal"])[0], 500)}
    assert len(index) == 200


def test_a_passage_deleted_since_is_not_found(tmp_path: Path) -> None:
    words.embedded(tmp_path, CORPUS)
    index = DenseIndex.open(tmp_path, words.questions)
    words.put(tmp_path, [], gone=["p2"])
    assert "p2" not in {one.passage.id for one in asyncio.run(index.search("harbour town salted plums", 10))}
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)


def test_an_index_without_vectors_says_how_to_make_them(tmp_path: Path) -> None:
    words.put(tmp_path, CORPUS)
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path)


def test_vectors_half_made_or_of_other_weights_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    words.put(tmp_path / "index", CORPUS)
    embed(tmp_path / "index", Encoding(str(folder)), encode=words.passages)
    (folder / "config.json").write_text('{"other": 1}')
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path / "index", words.questions)
    with refused(IndexUnavailable):
        embed(tmp_path / "index", encode=words.passages)
    manifest = store.read_manifest(tmp_path / "index")
    assert manifest is not None
    store.Store(tmp_path / "index", replace(manifest, content="")).close()
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path / "index", words.questions)


@pytest.mark.parametrize("kept", [0, 2, 500, 10_000])
def test_a_damaged_graph_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    pytest.importorskip("usearch", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    monkeypatch.setattr("gnothi.retrieval.dense.index.EXACT", 100)
    words.embedded(tmp_path, made_up(1, 200))
    graph = tmp_path / store.FOLDER / "neighbours-0.usearch"
    graph.write_bytes(graph.read_bytes()[:kept])
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)


@pytest.mark.parametrize("damage", ["vectors-0.f32", "rows-0.sqlite", "gnothi-index.json"])
def test_damaged_files_are_told(tmp_path: Path, damage: str) -> None:
    words.embedded(tmp_path, CORPUS)
    (tmp_path / store.FOLDER / damage).write_bytes(b"no")
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("generation", "/../other"),
        ("generation", -1),
        ("dimension", -1),
        ("dimension", "9"),
        ("encoder", None),
        ("passages", 1.5),
    ],
)
def test_a_manifest_with_values_of_other_kinds_is_damage(tmp_path: Path, field: str, value: object) -> None:
    words.embedded(tmp_path, CORPUS)
    file = tmp_path / store.FOLDER / "gnothi-index.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)


async def test_vectors_of_another_length_than_the_encoders_are_damage(tmp_path: Path) -> None:
    words.embedded(tmp_path, CORPUS)
    file = tmp_path / store.FOLDER / "gnothi-index.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"dimension": 100}))
    with refused(IndexUnavailable):
        await DenseIndex.open(tmp_path, words.questions).search("heron", 3)


def test_vectors_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    words.embedded(tmp_path, CORPUS)
    file = tmp_path / store.FOLDER / "vectors-0.f32"
    file.write_bytes(file.read_bytes()[:-4])
    with refused(IndexUnavailable):
        embed(tmp_path, encode=words.passages)


@pytest.mark.parametrize(("change", "message"), [("digest = 1 << 40", ""), ("id = x'ff' WHERE row = 0", "is no text")])
def test_rows_of_other_kinds_are_made_again_or_refused(tmp_path: Path, change: str, message: str) -> None:
    words.embedded(tmp_path, CORPUS)
    with contextlib.closing(sqlite3.connect(tmp_path / store.FOLDER / "rows-0.sqlite")) as rows, rows:
        rows.execute(f"UPDATE rows SET {change}")
    DenseIndex.open(tmp_path, words.questions).nearest(words.questions(["heron"])[0], 3)
    if not message:
        assert embed(tmp_path, encode=words.passages).encoded == len(CORPUS)
        return
    with refused(IndexUnavailable):
        embed(tmp_path, encode=words.passages)


@pytest.mark.timeout(120)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", ["vectors-0.f32", "rows-0.sqlite"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    words.embedded(tmp_path, CORPUS)
    (tmp_path / store.FOLDER / name).unlink()
    os.mkfifo(tmp_path / store.FOLDER / name)
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)
    with refused(IndexUnavailable):
        embed(tmp_path, encode=words.passages)

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval import folder as folder_module
from gnothi.retrieval import writer as writer_module
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.folder import FILE, Manifest, read_manifest, write_manifest
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.writer import IndexWriter
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import made_up


def filled(path: Path) -> Path:
    with IndexWriter(path) as writer:
        for passage in CORPUS:
            writer.put(passage)
        writer.commit()
    return path


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("plain") / "index")


@pytest.fixture(scope="module")
def worn_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus in another order, spread over segments, with passages replaced and deleted on the way."""
    path = tmp_path_factory.mktemp("worn") / "index"
    with IndexWriter(path) as writer:
        for passage in reversed(CORPUS):
            writer.put(passage)
            writer.put(made_up(1, 1)[0])
            writer.commit()
        writer.delete(made_up(1, 1)[0].id)
        writer.commit()
    return path


class TestFolderConformance(RetrieverConformance):
    @pytest_asyncio.fixture
    async def retriever(self, plain_folder: Path) -> AsyncIterator[Retriever]:
        yield open_index(plain_folder)


class TestWornFolderConformance(RetrieverConformance):
    @pytest_asyncio.fixture
    async def retriever(self, worn_folder: Path) -> AsyncIterator[Retriever]:
        yield open_index(worn_folder)


async def test_a_folder_answers_as_memory_does(tmp_path: Path) -> None:
    corpus = made_up(5, 300)
    with IndexWriter(tmp_path / "index") as writer:
        for i, passage in enumerate(corpus):
            writer.put(passage)
            if i % 100 == 0:
                writer.commit()
        writer.commit()
    folder, memory = open_index(tmp_path / "index"), BM25Index.in_memory(corpus)
    for passage in corpus[::20]:
        query = " ".join(passage.text.split()[:5])
        assert await folder.search(query, 10) == await memory.search(query, 10)


def test_the_manifest_is_read_back(tmp_path: Path) -> None:
    manifest = Manifest(passages=7, complete=True)
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest


def test_no_index(tmp_path: Path) -> None:
    with refused(IndexUnavailable):
        open_index(tmp_path / "gone")
    (tmp_path / "file.jsonl").write_text("{}")
    with refused(IndexUnavailable):
        open_index(tmp_path / "file.jsonl")
    with refused(IndexUnavailable):
        open_index(tmp_path)


@pytest.mark.parametrize(
    "change", [{"version": 99, "created_by": "9.1"}, {"version": None}, {"format": "gnothi-dense"}, {"passages": "many"}]
)
def test_an_index_of_another_version_or_kind(tmp_path: Path, change: dict[str, object]) -> None:
    path = filled(tmp_path / "index")
    manifest = json.loads((path / FILE).read_text())
    (path / FILE).write_text(json.dumps(manifest | change))
    with refused(IndexUnavailable):
        open_index(path)
    with refused(IndexUnavailable):
        IndexWriter(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_a_damaged_manifest(tmp_path: Path, text: str) -> None:
    path = filled(tmp_path / "index")
    (path / FILE).write_text(text)
    with refused(IndexUnavailable):
        open_index(path)


@pytest.mark.parametrize("damage", ["meta", "segment"])
def test_damaged_files_of_the_engine(tmp_path: Path, damage: str) -> None:
    path = filled(tmp_path / "index")
    victim = path / "meta.json" if damage == "meta" else next(path.glob("*.term"))
    victim.write_bytes(b"garbage")
    with refused(IndexUnavailable):
        open_index(path)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    with refused(IndexUnavailable):
        IndexWriter(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
    with refused(InvalidSetting):
        IndexWriter(tmp_path / "thesis.txt")


async def test_an_index_that_vanishes_while_open(tmp_path: Path) -> None:
    path = filled(tmp_path / "index")
    index = open_index(path)
    path.rename(tmp_path / "moved")
    with refused(IndexUnavailable):
        await index.search("heron", 3)


def test_an_index_that_may_only_be_read(tmp_path: Path) -> None:
    """As another user, for the superuser may write anywhere."""
    path = filled(tmp_path / "index")
    for place in (path, *path.iterdir()):
        place.chmod(0o555 if place.is_dir() else 0o444)
    for parent in (tmp_path, *tmp_path.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o555)
    code = f"""
import os
from gnothi.errors import IndexUnavailable
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.writer import IndexWriter
if os.getuid() == 0:
    os.setuid(65534)
assert len(BM25Index.open({str(path)!r}).search_blocking("heron", 3)) == 2
try:
    IndexWriter({str(path)!r})
except IndexUnavailable as error:
    assert "Check the folder's permissions" in str(error), error
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": f"{root / 'src'}"}, check=False
    )
    path.chmod(0o755)
    assert done.returncode == 0, done.stderr


def test_of_two_builds_that_begin_together_one_writes_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    real = folder_module.write_whole

    def write_whole(file: Path, text: str) -> None:
        real(file, text)
        monkeypatch.setattr(folder_module, "write_whole", real)
        write_manifest(path, Manifest(passages=7))  # the other one

    monkeypatch.setattr(folder_module, "write_whole", write_whole)
    folder_module.prepare(path)
    assert read_manifest(path).passages == 7
    assert not list(path.glob("*.new"))


def test_another_build_that_begins_meanwhile_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    real, calls = Path.mkdir, 0

    def mkdir(self: Path, *given: object, **more: object) -> None:
        nonlocal calls
        calls += 1
        monkeypatch.setattr(Path, "mkdir", real)
        if calls == 1:
            filled(path)
        real(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", mkdir)
    folder_module.prepare(path)
    assert calls == 1
    assert read_manifest(path).passages == len(CORPUS)


def test_the_manifest_counts_as_it_is_once_the_folder_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    real = folder_module.prepare

    def prepare(folder: Path, language: str = "", fields: str = "") -> Manifest:
        monkeypatch.setattr(writer_module, "prepare", real)
        made = real(folder, language, fields)
        filled(folder)  # another build, after the manifest was looked at and before the lock is taken
        return made

    monkeypatch.setattr(writer_module, "prepare", prepare)
    with IndexWriter(path) as writer:
        writer.put(Passage("one more", "A heron."))
        writer.commit()
    alone = tmp_path / "alone"
    filled(alone)
    with IndexWriter(alone) as writer:
        writer.put(Passage("one more", "A heron."))
        writer.commit()
    assert read_manifest(path).content == read_manifest(alone).content

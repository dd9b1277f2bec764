from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.retrieval.writer import IndexWriter
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests import made_data as made
from tests.messages import refused
from tests.retrieval.test_recall import SETS, corpus
from tests.retrieval.test_recall import questions as asked

WORDS = st.sampled_from(["owl", "owls", "lighthouse", "sea", "keeper", "of", "the", "ship"])
TEXTS = st.lists(WORDS, max_size=50).map(" ".join)


def written(folder: Path, passages: Sequence[Passage]) -> Path:
    with IndexWriter(folder, memory_mb=64) as writer:
        writer.put_all([(passage, "") for passage in passages])
        writer.commit()
    return folder


def dealt(folder: Path, passages: Sequence[Passage], shares: Sequence[int]) -> Path:
    """Passage i into the shard named shares[i]."""
    for share in set(shares):
        written(folder / str(share), [one for one, where in zip(passages, shares, strict=True) if where == share])
    return folder


class TestShardsConformance(RetrieverConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return dealt(tmp_path_factory.mktemp("shards"), CORPUS, [i % 3 for i in range(len(CORPUS))])

    @pytest_asyncio.fixture
    async def retriever(self, folder: Path) -> AsyncIterator[Retriever]:
        yield open_index(f"shards:{folder}")


async def test_a_lock_that_comes_while_the_links_are_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine, where the engine's thread that looks for commits is late."""
    (tmp_path / "links").mkdir()
    dealt(tmp_path / "shards", CORPUS, [i % 3 for i in range(len(CORPUS))])
    rmdir, late = os.rmdir, [True]

    def removed(path: str, **more: Any) -> None:
        if Path(path).name.startswith("gnothi-index-") and late and late.pop():
            (tmp_path / "links" / Path(path).name / ".tantivy-meta.lock").touch()
        rmdir(path, **more)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "links"))
    monkeypatch.setattr(os, "rmdir", removed)
    found = await open_index(f"shards:{tmp_path / 'shards'}").search("heron fish water", 1)
    assert [one.passage for one in found] == [CORPUS[4]]
    assert not late
    assert list((tmp_path / "links").iterdir()) == []


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 2)), min_size=1, max_size=25),
    st.lists(TEXTS, min_size=1, max_size=4),
    st.integers(1, 30),
)
def test_shards_of_any_sizes_give_the_ranking_and_scores_of_one_index(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int]], queries: list[str], k: int
) -> None:
    passages = [Passage(f"p{i:02}", text, title) for i, (text, title, _) in enumerate(rows)]
    folder = dealt(tmp_path_factory.mktemp("shards"), passages, [share for *_, share in rows])
    shards, one = open_index(f"shards:{folder}"), BM25Index.in_memory(passages)
    for query in queries:
        assert asyncio.run(shards.search(query, k)) == one.search_blocking(query, k)


def test_a_commit_to_one_shard_is_seen_and_changes_the_fingerprint(tmp_path: Path) -> None:
    dealt(tmp_path, CORPUS, [i % 2 for i in range(len(CORPUS))])
    index = open_index(f"shards:{tmp_path}")
    before = index_fingerprint(f"shards:{tmp_path}")
    new = Passage("new", "quetzals quetzals")
    assert asyncio.run(index.search("quetzals", 3)) == ()
    written(tmp_path / "1", [new])
    assert [one.passage for one in asyncio.run(index.search("quetzals", 3))] == [new]
    assert index_fingerprint(f"shards:{tmp_path}") != before
    with IndexWriter(tmp_path / "1", memory_mb=64) as writer:
        writer.delete("new")
        writer.commit()
    assert asyncio.run(index.search("quetzals", 3)) == ()


def test_an_id_in_two_shards_is_refused_where_it_is_found(tmp_path: Path) -> None:
    written(tmp_path / "a", [Passage("x", "owls")])
    written(tmp_path / "b", [Passage("x", "owls")])
    with refused(InvalidSetting):
        asyncio.run(open_index(f"shards:{tmp_path}").search("owls", 1))


def test_a_copy_of_a_shard_is_refused(tmp_path: Path) -> None:
    shutil.copytree(written(tmp_path / "a", [Passage("x", "owls")]), tmp_path / "b")
    with refused(InvalidSetting):
        open_index(f"shards:{tmp_path}")


def test_what_is_no_folder_of_shards_says_what_to_do(tmp_path: Path) -> None:
    with refused(IndexUnavailable):
        open_index(f"shards:{tmp_path / 'none'}")
    with refused(IndexUnavailable):
        open_index(f"shards:{tmp_path}")
    written(tmp_path / "a", [Passage("x", "owls")])
    (tmp_path / ".hidden").mkdir()
    open_index(f"shards:{tmp_path}")
    (tmp_path / "notes").mkdir()  # never silently fewer
    with refused(IndexUnavailable):
        open_index(f"shards:{tmp_path}")


def test_a_damaged_shard_is_told(tmp_path: Path) -> None:
    dealt(tmp_path, CORPUS, [i % 2 for i in range(len(CORPUS))])
    for file in (tmp_path / "1").glob("*.term"):
        file.unlink()
    with refused(IndexUnavailable, varies=r"(?<=cannot be read: ).*(?=\. Expected complete)"):
        open_index(f"shards:{tmp_path}")
    (tmp_path / "1" / "meta.json").write_text("{", encoding="utf-8")
    with refused(IndexUnavailable):
        open_index(f"shards:{tmp_path}")


_SEARCH = """
import json, sys
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.shards import shards
from pathlib import Path
index = BM25Index.open(*shards(Path(sys.argv[1])))
print(json.dumps([[[one.passage.id, one.score] for one in index.search_blocking(q, 10)] for q in json.load(sys.stdin)]))
"""


def top_10_of_shards_and_of_one_index(data: Path, tmp_path: Path, number: int) -> tuple[int, int]:
    """Every other question; returns how many passages and questions. Each shard is built by a process of its own, at the same
    time; and as many processes search, each all shards, since exact statistics are those of one reader: the questions are dealt
    out among them."""
    passages = [Passage(f"p{i:05}", text, title) for i, (title, text) in enumerate(dict.fromkeys(corpus(data)))]
    questions = [one["question"] for name in SETS for one in asked(data, name)][::2]
    builds = []
    for shard in range(number):
        source = tmp_path / f"{shard}.jsonl"
        rows = ({"id": one.id, "title": one.title, "text": one.text} for one in passages[shard::number])
        source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        out = tmp_path / "shards" / str(shard)
        command = ["-m", "gnothi", "index", "build", str(source), "--out", str(out), "--words", "0", "--memory-mb", "64"]
        builds.append(subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL))
    assert [one.wait() for one in builds] == [0] * number
    command = [sys.executable, "-c", _SEARCH, str(tmp_path / "shards")]
    searches = []
    for part in range(number):
        (tmp_path / f"{part}.json").write_text(json.dumps(questions[part::number]), encoding="utf-8")
        with (tmp_path / f"{part}.json").open() as given, (tmp_path / f"{part}.found").open("w") as found:
            searches.append(subprocess.Popen(command, stdin=given, stdout=found))
    assert [one.wait() for one in searches] == [0] * number
    answers: list[Any] = [None] * len(questions)
    for part in range(number):
        answers[part::number] = json.loads((tmp_path / f"{part}.found").read_text(encoding="utf-8"))
    one = BM25Index.open(written(tmp_path / "one", passages))
    assert len(one) == len(passages)
    assert answers == [[[s.passage.id, s.score] for s in one.search_blocking(q, 10)] for q in questions]
    return len(passages), len(questions)


def test_shards_built_by_processes_find_what_one_index_finds(made_data: Path, tmp_path: Path) -> None:
    assert top_10_of_shards_and_of_one_index(made_data, tmp_path, 2) == (2 * made.QUESTIONS + 1, made.QUESTIONS)


@pytest.mark.slow
def test_the_top_10_of_500_questions_are_those_of_one_index(shared_data: Path, tmp_path: Path) -> None:
    assert top_10_of_shards_and_of_one_index(shared_data, tmp_path, 4) == (13_797, 500)

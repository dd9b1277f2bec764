"""Title and text scored apart: against the formula, written anew, over words that no analyser changes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from math import log
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.cli.main import run
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.analysis import TIE_BREAKER, analyser
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.embed import embed
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.folder import FILE, read_manifest
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.writer import IndexWriter
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.messages import refused
from tests.methods.oracles.authors import source
from tests.retrieval.dense import words

WORDS = st.lists(st.sampled_from("w1 w2 w3 w4 w5".split()), max_size=9).map(" ".join)
PASSAGES = st.lists(
    st.builds(Passage, st.uuids().map(str), WORDS, WORDS), min_size=1, max_size=12, unique_by=lambda one: one.id
)


def bm25(documents: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """Robertson and Zaragoza's formula with k1 = 1.2, b = 0.75 over one field; a query's words count as often as they stand."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for word in query:
        having = sum(word in one for one in documents.values())
        for name, one in documents.items():
            often = one.count(word)
            if often:
                rare = log(1 + (len(documents) - having + 0.5) / (having + 0.5))
                scores[name] += rare * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(one) / mean))
    return scores


def best_fields(passages: list[Passage], query: str) -> dict[str, float]:
    """As Elasticsearch documents multi_match of type best_fields with a tie_breaker of 0.5: the best field's score, and half of
    all others'."""
    titles = bm25({one.id: one.title.split() for one in passages}, query.split())
    texts = bm25({one.id: one.text.split() for one in passages}, query.split())
    both = {name: max(titles[name], texts[name]) + 0.5 * min(titles[name], texts[name]) for name in titles}
    return {name: score for name, score in both.items() if score > 0}


@settings(max_examples=40, deadline=None)
@given(PASSAGES, WORDS)
def test_scores_are_those_of_best_fields(passages: list[Passage], query: str) -> None:
    found = BM25Index.in_memory(passages, fields="best").search_blocking(query, len(passages))
    assert {one.passage.id: one.score for one in found} == pytest.approx(best_fields(passages, query), abs=2e-4)
    by_id = {one.id: one for one in passages}
    assert all(one.passage == by_id[one.passage.id] for one in found)


@pytest.mark.parametrize(
    ("repository", "path"),
    [
        ("THU-KEG/SeaKR", "SEAKR/retriever.py"),
        ("l-xin/KEQA", "src/es.py"),
        ("oneal2000/DRAGIN", "src/retriever.py"),
        ("jzbjyb/FLARE", "src/retriever.py"),
    ],
)
def test_the_authors_search_so(repository: str, path: str) -> None:
    code = source(repository, path)
    assert set(re.findall(r'"type": "(\w+_fields)"', code)) == {"best_fields"}
    assert {float(one) for one in re.findall(r'"tie_breaker": ([\d.]+)', code)} == {TIE_BREAKER}


class TestConformance(RetrieverConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return written(tmp_path_factory.mktemp("fields"), CORPUS)

    @pytest_asyncio.fixture
    async def retriever(self, folder: Path) -> AsyncIterator[Retriever]:
        yield open_index(str(folder))


def written(folder: Path, passages: list[Passage] | tuple[Passage, ...], fields: str = "best") -> Path:
    with IndexWriter(folder, memory_mb=64, fields=fields) as writer:
        writer.put_all([(passage, "") for passage in passages])
        writer.commit()
    return folder


def test_words_without_meaning_are_left_out_by_language() -> None:
    assert analyser(fields="best").analyze("The Lord of the Rings") == ["lord", "ring"]
    assert analyser().analyze("The Lord of the Rings") == ["the", "lord", "of", "the", "ring"]
    assert analyser("german", "best").analyze("der Herr und die Ringe") == analyser("german").analyze("Herr Ringe")
    assert analyser("none", "best").analyze("the lord") == ["the", "lord"]


@pytest.mark.parametrize("fields", ["cross", "best"])
def test_a_title_in_another_script_is_found(fields: str, tmp_path: Path) -> None:
    passages = (Passage("a", "A river in the east.", "長江"), Passage("b", "長江 is a river, and 黄河 is one.", "Rivers"))
    index = BM25Index.open(written(tmp_path, passages, fields))
    assert {one.passage.id for one in index.search_blocking("長江", 5)} == {"a", "b"}
    assert index.search_blocking("黄河", 5)[0].passage == passages[1]


def test_a_folder_keeps_its_fields_replaces_deletes_and_filters(tmp_path: Path) -> None:
    written(tmp_path, [Passage("a", "old"), Passage("b", "lighthouse", "Orvel", {"year": 1820})])
    with IndexWriter(tmp_path, memory_mb=64) as writer:
        assert writer.put(Passage("a", "keeper of the lighthouse", "Mirna")) == "replaced"
        assert writer.put(Passage("b", "lighthouse", "Orvel", {"year": 1820})) == "standing"
        writer.commit()
    index = BM25Index.open(tmp_path)
    assert read_manifest(tmp_path).fields == "best"
    assert index.search_blocking("mirna lighthouse", 1)[0].passage.id == "a"
    assert [one.passage.id for one in index.search_blocking("lighthouse", 5, as_filters(["year=1820"]))] == ["b"]
    assert sorted(one.id for one in index.passages()) == ["a", "b"]


async def test_vectors_stand_beside_them_and_both_count(tmp_path: Path) -> None:
    written(tmp_path, [Passage("a", "keeper of the lighthouse", "Mirna"), Passage("b", "A river.", "Orvel")])
    embed(tmp_path, Encoding("words"), encode=words.passages)
    dense = DenseIndex.open(tmp_path, words.questions)
    assert (await dense.search("lighthouse keeper", 1))[0].passage.id == "a"
    assert await dense.counter()(["Mirna", "the lighthouse"]) == 1


def test_other_fields_than_a_folder_was_begun_with_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "one", CORPUS, "")
    with refused(InvalidSetting):
        IndexWriter(tmp_path / "one", memory_mb=64, fields="best")
    with refused(InvalidSetting):
        build([tmp_path], tmp_path / "two", fields="most_fields")
    with refused(InvalidSetting):
        build([tmp_path], "elasticsearch:http://localhost:9/name", fields="best")
    written(tmp_path / "two", [Passage("z", "other")])
    with refused(InvalidSetting):
        open_index(f"shards:{tmp_path}")


def test_a_folder_from_before_there_were_fields_opens(tmp_path: Path) -> None:
    written(tmp_path, CORPUS, "cross")
    manifest = tmp_path / FILE
    manifest.write_text(manifest.read_text("utf-8").replace('"fields": "cross",', ""), "utf-8")
    assert len(BM25Index.open(tmp_path).search_blocking(CORPUS[0].text, 3)) > 0
    manifest.write_text(manifest.read_text("utf-8").replace('"language"', '"fields": "other", "language"'), "utf-8")
    with refused(IndexUnavailable):
        BM25Index.open(tmp_path)


def test_the_command_builds_and_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, index = tmp_path / "passages.jsonl", str(tmp_path / "index")
    source.write_text('{"_id": "a", "title": "Orvel", "text": "The lighthouse stands here."}\n', "utf-8")
    assert run(["index", "build", str(source), "--out", index, "--fields", "best"]) == 0
    assert run(["index", "info", index]) == 0
    assert "fields: best" in capsys.readouterr().out

"""How often phrases occur among passages, and together: against a count of plain lists of words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.errors import InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval import bm25
from gnothi.retrieval.analysis import Fields
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.dense.fusion import Hybrid
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.foreign import as_retriever
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.results import counter
from gnothi.retrieval.wrappers import Reranked, Traced
from gnothi.retrieval.writer import IndexWriter
from gnothi.testing.retriever import FakeReranker, ScriptedRetriever
from gnothi.types import Passage
from tests.messages import refused

TEXTS = st.lists(st.sampled_from("w1 w2 w3 w4".split()), max_size=7).map(" ".join)
PASSAGES = st.lists(
    st.builds(Passage, st.uuids().map(str), TEXTS, TEXTS), min_size=1, max_size=10, unique_by=lambda one: one.id
)
PHRASES = st.lists(st.lists(st.sampled_from("w1 w2 w3 w4".split()), min_size=1, max_size=3).map(" ".join), max_size=2)
BORN = (
    Passage("a", "Mira Tolven was born in Kestrel.", "Mira Tolven", {"year": 1900}),
    Passage("b", "Kestrel lies by the sea. Mira Brack and Oda Tolven live there.", "Kestrel"),
    Passage("c", "長江 and 黄河 are rivers; 長江大橋 is a bridge.", "Rivers"),
)


def stands(passage: Passage, phrase: str) -> bool:
    wanted = phrase.split()
    return any(
        words[place : place + len(wanted)] == wanted
        for words in (passage.title.split(), passage.text.split())
        for place in range(len(words))
    )


@settings(max_examples=60, deadline=None)
@given(PASSAGES, PHRASES, st.sampled_from(["cross", "best"]))
def test_counts_are_those_of_the_words(passages: list[Passage], phrases: list[str], fields: Fields) -> None:
    found = BM25Index.in_memory(passages, fields=fields).count_blocking(phrases)
    assert found == (sum(all(stands(one, phrase) for phrase in phrases) for one in passages) if phrases else 0)


@pytest.mark.parametrize(
    ("phrases", "number"),
    [
        (["Mira Tolven"], 1),
        (["mira", "tolven"], 2),
        (["Kestrel"], 2),
        (["Mira Tolven", "Kestrel"], 1),
        (["Oda Tolven", "Mira Tolven"], 0),
        (["長江"], 1),
        (["長江大橋", "rivers"], 1),
        (["大橋江"], 0),
        (["of the"], 0),
        (["?"], 0),
        ([""], 0),
        (["\udc00"], 0),
    ],
)
@pytest.mark.parametrize("fields", ["cross", "best"])
def test_phrases_of_every_script(phrases: list[str], number: int, fields: Fields) -> None:
    assert BM25Index.in_memory(BORN, fields=fields).count_blocking(phrases) == number


def test_of_very_many_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "_COUNTED", 10)
    index = BM25Index.in_memory([Passage(str(n), "Mira Tolven" if n % 2 else "Tolven Mira") for n in range(100)])
    assert index.count_blocking(["Mira Tolven"]) == 50
    assert index.count_blocking(["Tolven Tolven"]) == 1  # nobody read them all


async def test_a_folder_counts_what_is_there_however_it_is_wrapped(tmp_path: Path) -> None:
    with IndexWriter(tmp_path, memory_mb=64) as writer:
        writer.put_all([(passage, "") for passage in (*BORN, Passage("d", "Kestrel"))])
        writer.commit()
    opened = open_index(str(tmp_path))
    assert await counter(opened)(["Kestrel"]) == 3
    with IndexWriter(tmp_path, memory_mb=64) as writer:
        writer.delete("d")
        writer.commit()
    others: list[Retriever] = [
        Reranked(opened, FakeReranker()),
        Hybrid(opened, ScriptedRetriever(()), "both"),
    ]
    assert [await counter(one)(["Kestrel"]) for one in (opened, *others)] == [2] * 3
    assert [await counter(filtered(one, as_filters(["year=1900"])))(["Kestrel"]) for one in (opened, others[0])] == [1, 1]


def nothing(query: str, k: int) -> list[str]:  # noqa: ARG001
    return []


def test_what_does_not_count_is_refused() -> None:
    plain = as_retriever(nothing)
    for retriever in (plain, Traced(plain), Reranked(plain, FakeReranker())):
        with refused(InvalidSetting):
            counter(retriever)

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections import Counter

import pytest
import tantivy

from gnothi.protocols import Retriever
from gnothi.retrieval import analysis
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.filters import Filters
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage, ScoredPassage
from tests.retrieval import filtered


class TestInMemoryConformance(RetrieverConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def retriever(cls) -> Retriever:
        return BM25Index.in_memory(CORPUS)


def textbook_bm25(corpus: list[Passage], query: str, k1: float = 1.2, b: float = 0.75) -> dict[str, float]:
    """BM25 written from the formula, float64, over whole passages; sharing only the analyser with the index."""
    analyse = analysis.analyser().analyze
    terms = {passage.id: Counter(analyse(passage.title) + analyse(passage.text)) for passage in corpus}
    lengths = {key: sum(counts.values()) for key, counts in terms.items()}
    mean = sum(lengths.values()) / len(lengths)
    scores: dict[str, float] = {}
    for key, counts in terms.items():
        score = 0.0
        for term in analyse(query):
            n = sum(term in other for other in terms.values())
            idf = math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
            score += idf * counts[term] * (k1 + 1) / (counts[term] + k1 * (1 - b + b * lengths[key] / mean))
        if score > 0:
            scores[key] = score
    return scores


def random_corpus(seed: int, size: int, longest: int = 38) -> list[Passage]:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(60)]
    weights = [1 / (i + 1) for i in range(60)]
    return [
        Passage(f"p{i:03}", " ".join(rng.choices(words, weights, k=rng.randint(1, longest))), " ".join(rng.choices(words, k=2)))
        for i in range(size)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_order_are_those_of_the_formula(seed: int) -> None:
    corpus = random_corpus(seed, 120)
    index = BM25Index.in_memory(corpus)
    rng = random.Random(100 + seed)
    for _ in range(20):
        query = " ".join(rng.choices([f"w{i}" for i in range(60)], k=rng.randint(1, 8)))  # repeats included
        expected = textbook_bm25(corpus, query)
        results = index.search_blocking(query, len(corpus))
        assert {result.passage.id for result in results} == set(expected)
        for result in results:
            assert result.score == pytest.approx(expected[result.passage.id], abs=2e-4)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_ties_are_broken_by_id_whatever_the_order_of_arrival(k: int) -> None:
    passages = [Passage(f"id{i:04}", "the same words in each") for i in range(700)]
    random.Random(3).shuffle(passages)
    results = BM25Index.in_memory(passages).search_blocking("same words", k)
    assert [result.passage.id for result in results] == [f"id{i:04}" for i in range(k)]


def test_words_match_across_inflection_case_and_accents() -> None:
    index = BM25Index.in_memory([Passage("a", "Beyoncé was SINGING in São Paulo"), Passage("b", "nothing of it")])
    for query in ("beyonce", "sings", "sao paulo", "Singing"):
        assert [result.passage.id for result in index.search_blocking(query, 5)] == ["a"]


def test_the_title_is_searched_too() -> None:
    index = BM25Index.in_memory(
        [Passage("a", "It was built in 1820.", "Orvel"), Passage("b", "It was built in 1820.", "Mirna")]
    )
    assert index.search_blocking("Mirna built", 1)[0].passage.id == "b"


def test_get_by_id_and_length() -> None:
    index = BM25Index.in_memory(CORPUS)
    assert len(index) == len(CORPUS)
    assert index.get("p2") == CORPUS[1]
    assert index.get("none") is None
    assert index.get("\udc00") is None


def test_of_equal_ids_the_last_stays() -> None:
    index = BM25Index.in_memory([Passage("a", "first"), Passage("a", "second")])
    assert len(index) == 1
    assert index.get("a") == Passage("a", "second")


def test_an_empty_index_finds_nothing() -> None:
    assert BM25Index.in_memory([]).search_blocking("anything", 3) == ()


async def test_a_search_does_not_block_the_event_loop() -> None:
    index = BM25Index.in_memory(CORPUS)
    blocked = index.search_blocking
    release = threading.Event()

    def slow(query: str, k: int, filters: Filters = ()) -> tuple[ScoredPassage, ...]:
        assert release.wait(60)  # only a running event loop releases it
        return blocked(query, k, filters)

    index.search_blocking = slow  # type: ignore[method-assign]
    task = asyncio.create_task(index.search("heron", 1))
    await asyncio.sleep(0.01)
    release.set()
    assert len(await task) == 1


def test_a_parsed_query_gives_the_same_results() -> None:
    """Against tantivy's own query parser, for plain words without repeats (its parser drops those)."""
    corpus = random_corpus(9, 80)
    index = tantivy.Index(analysis.schema())
    analysis.register(index)
    writer = index.writer(15_000_000, 1)
    for passage in corpus:
        writer.add_document(analysis.document(passage, ""))
    writer.commit()
    index.reload()
    ours = BM25Index.in_memory(corpus)
    for query in ("w3 w7 w30", "w1 w44", "w59"):
        theirs = index.searcher().search(index.parse_query(query, ["body"]), limit=80, count=False).hits
        scores = [result.score for result in ours.search_blocking(query, 80)]
        assert scores == pytest.approx([score for score, _ in theirs], abs=1e-4)


async def test_a_filtered_search_finds_what_a_plain_scan_lets_through() -> None:
    corpus = filtered.passages(1)
    await filtered.check(BM25Index.in_memory(corpus), corpus, seed=2)

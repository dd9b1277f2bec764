"""What every Retriever must do.

Subclass ``RetrieverConformance`` in a test file and give it a fixture ``retriever`` that yields one over ``CORPUS``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gnothi.errors import InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.types import Passage, ScoredPassage

CORPUS = (
    Passage(
        "p1", "The lighthouse of Orvel was built in 1820 by Dana Brisk.", "Orvel lighthouse", {"kind": "place", "year": 1820}
    ),
    Passage("p2", "Orvel is a harbour town known for its salted plums.", "Orvel", {"kind": "place", "date": "2025-01-31"}),
    Passage("p3", "Dana Brisk was an engineer and a painter of birds.", "Dana Brisk", {"year": 1790.5, "sure": True}),
    # The next two are the same but for their id: whatever the score, they tie.
    Passage("twin-b", "A heron stands in shallow water waiting for fish.", "", {"kind": "bird", "year": 1899}),
    Passage("twin-a", "A heron stands in shallow water waiting for fish.", "", {"kind": "bird", "year": 1901}),
    Passage("p6", "Ümlaut naïve 東京 — “quoted” text\nwith a second line & <tags>.", 'Odd: "title"'),
)
# What each query must find first. A retriever under test finds at least this.
EXPECTED = {
    "Who built the lighthouse of Orvel?": "p1",
    "harbour town salted plums": "p2",
    "engineer and painter of birds": "p3",
    "heron fish water": "twin-a",
    "naïve quoted text": "p6",
}
NO_MATCH = "qqxzzv wwkkj"
# Filters, each with what passes them all.
FILTERS: tuple[tuple[tuple[str, ...], set[str]], ...] = (
    (("kind=bird",), {"twin-a", "twin-b"}),
    (("kind!=bird",), {"p1", "p2"}),
    (("kind=bird,place", "year>=1820"), {"p1", "twin-a", "twin-b"}),
    (("year>1790.5", "year<=1899"), {"p1", "twin-b"}),
    (("date>=2025-01", "date<2025-02"), {"p2"}),
    (("date=2025",), {"p2"}),
    (("date>2025-01",), set()),
    (("sure=true",), {"p3"}),
    (("kind=' OR 1=1 --",), set()),
    (("kind=pl*",), {"p1", "p2"}),
    (("nowhere=1",), set()),
)
ODD_QUERIES = (
    'unbalanced "quote',
    "a AND OR NOT (",
    "title:Orvel^^",
    '+ - && || ! ( ) { } [ ] ^ " ~ * ? : \\ /',
    "\x00\x01",
    "東京",
    "🦉 owl",
    "[a TO b]",
    "text:/regex(/",
    "word " * 3000,
    "x" * 100_000,
    "\ud800".encode("utf-8", "replace").decode(),
    "\n\t",
    "IN [",
    "a~2 b*",
)


def narrowed(retriever: Retriever, filters: tuple[str, ...]) -> Retriever | None:
    """None where it cannot filter, and says so."""
    try:
        return filtered(retriever, as_filters(filters))
    except InvalidSetting as error:
        if "cannot filter" not in error.message:
            raise
        return None


class RetrieverConformance:
    """``lexical`` False: the retriever ranks by similarity and so finds something for any query.

    ``corpus`` and ``expected`` can be replaced where a retriever's passages are of another kind.
    """

    lexical = True
    corpus: tuple[Passage, ...] = CORPUS
    expected: Mapping[str, str] = EXPECTED

    async def test_is_a_retriever_with_a_name(self, retriever: Retriever) -> None:
        assert isinstance(retriever, Retriever)
        assert retriever.name

    async def test_finds_the_obvious_passage_first(self, retriever: Retriever) -> None:
        first = {query: (await retriever.search(query, 3))[0].passage.id for query in self.expected}
        assert first == self.expected

    async def test_passages_come_back_whole(self, retriever: Retriever) -> None:
        originals = {passage.id: passage for passage in self.corpus}
        for query in self.expected:
            for result in await retriever.search(query, 10):
                original = originals[result.passage.id]
                assert replace(result.passage, metadata={}) == replace(original, metadata={})
                if narrowed(retriever, ("kind=bird",)) is not None:
                    assert result.passage.metadata.items() >= original.metadata.items()

    @pytest.mark.parametrize(("filters", "passing"), FILTERS, ids=[" and ".join(filters) for filters, _ in FILTERS])
    async def test_a_filter_finds_all_that_passes_and_nothing_else(
        self, retriever: Retriever, filters: tuple[str, ...], passing: set[str]
    ) -> None:
        """A retriever that cannot filter says so."""
        among = narrowed(retriever, filters)
        if among is None:
            return
        query = " ".join(one.text for one in self.corpus)
        every = await retriever.search(query, len(self.corpus))
        scored = await among.search(query, len(self.corpus))
        assert {one.passage.id for one in scored} == passing & {one.passage.id for one in every}
        assert await among.search(query, 1) == scored[:1]
        assert await retriever.search(query, len(self.corpus)) == every

    async def test_filters_add_up(self, retriever: Retriever) -> None:
        among, both = narrowed(retriever, ("kind=place",)), narrowed(retriever, ("kind=place", "year<1900"))
        if among is None or both is None:
            pytest.skip("it cannot filter")
        query = " ".join(one.text for one in self.corpus)
        scored = await filtered(among, as_filters("year<1900")).search(query, 10)
        assert scored == await both.search(query, 10)
        assert [one.passage.id for one in scored] == ["p1"]

    @pytest.mark.parametrize("k", [1, 2, 3, 1000, 10**12])
    async def test_at_most_k_best_first_ties_by_id_no_repeats(self, retriever: Retriever, k: int) -> None:
        for query in self.expected:
            results = await retriever.search(query, k)
            assert isinstance(results, tuple)
            assert 1 <= len(results) <= min(k, len(self.corpus))
            assert all(isinstance(result, ScoredPassage) for result in results)
            keys = [(-result.score, result.passage.id) for result in results]
            assert keys == sorted(keys)
            assert len({result.passage.id for result in results}) == len(results)

    async def test_fewer_results_are_a_prefix_of_more(self, retriever: Retriever) -> None:
        for query in self.expected:
            many = await retriever.search(query, 6)
            for k in range(len(many)):
                assert await retriever.search(query, k) == many[:k]

    async def test_negative_k_is_the_callers_mistake(self, retriever: Retriever) -> None:
        with pytest.raises(InvalidSetting, match="-1"):
            await retriever.search("heron", -1)

    @pytest.mark.parametrize("query", ["", " ", "\n\t "])
    async def test_an_empty_query_finds_nothing(self, retriever: Retriever, query: str) -> None:
        assert await retriever.search(query, 5) == ()

    async def test_no_match_gives_nothing(self, retriever: Retriever) -> None:
        if not self.lexical:
            pytest.skip("a similarity search always finds something")
        assert await retriever.search(NO_MATCH, 5) == ()

    @pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
    async def test_no_text_is_a_syntax_error(self, retriever: Retriever, query: str) -> None:
        assert isinstance(await retriever.search(query, 5), tuple)

    async def test_concurrent_searches_equal_sequential_ones(self, retriever: Retriever) -> None:
        queries = [*self.expected, NO_MATCH] * 5
        sequential = [await retriever.search(query, 3) for query in queries]
        concurrent = await asyncio.gather(*(retriever.search(query, 3) for query in queries))
        assert list(concurrent) == sequential

    async def test_closing_twice_is_fine(self, retriever: Retriever) -> None:
        await retriever.aclose()
        await retriever.aclose()

"""What every Reranker must do.

Subclass ``RerankerConformance`` in a test file and give it a fixture ``reranker``.
"""

from __future__ import annotations

import asyncio
import math

import pytest

from gnothi.protocols import Reranker

QUERY = "Who built the lighthouse of Orvel?"
TEXTS = (
    "The lighthouse of Orvel was built in 1820 by Dana Brisk.",
    "A heron stands in shallow water.",
    "Orvel is a harbour town.",
    "A heron stands in shallow water.",
    "",
    "Ümlaut naïve 東京 — “quoted” text\nwith a second line & <tags>.",
)
LONG = "the harbour of Orvel and the lighthouse " * 500


class RerankerConformance:
    async def test_is_a_reranker_with_a_name(self, reranker: Reranker) -> None:
        assert isinstance(reranker, Reranker)
        assert reranker.name

    async def test_one_finite_number_for_each_text(self, reranker: Reranker) -> None:
        scores = await reranker.score(QUERY, TEXTS)
        assert isinstance(scores, tuple)
        assert len(scores) == len(TEXTS)
        assert all(isinstance(score, float) and math.isfinite(score) for score in scores)

    async def test_no_texts_no_scores(self, reranker: Reranker) -> None:
        assert await reranker.score(QUERY, ()) == ()

    async def test_a_score_does_not_depend_on_the_other_texts(self, reranker: Reranker) -> None:
        together = await reranker.score(QUERY, TEXTS)
        assert together[1] == pytest.approx(together[3], abs=1e-4)
        for text, score in zip(TEXTS, together, strict=True):
            (alone,) = await reranker.score(QUERY, [text])
            assert alone == pytest.approx(score, abs=1e-4)
        assert await reranker.score(QUERY, TEXTS[::-1]) == pytest.approx(together[::-1], abs=1e-4)

    async def test_concurrent_calls_equal_sequential_ones(self, reranker: Reranker) -> None:
        queries = [QUERY, "heron", "Where is Orvel, the harbour town?", LONG] * 3
        sequential = [await reranker.score(query, TEXTS) for query in queries]
        concurrent = await asyncio.gather(*(reranker.score(query, TEXTS) for query in queries))
        for one, other in zip(sequential, concurrent, strict=True):
            assert other == pytest.approx(one, abs=1e-4)

    async def test_a_cancelled_call_does_not_harm_the_others(self, reranker: Reranker) -> None:
        expected = await reranker.score(QUERY, TEXTS)
        calls = [asyncio.create_task(reranker.score(QUERY, TEXTS)) for _ in range(4)]
        await asyncio.sleep(0)
        calls[1].cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for place in (0, 2, 3):
            assert outcomes[place] == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize(
        "query", ["", " \n", "東京", "x" * 20_000, LONG], ids=["empty", "blank", "cjk", "one word", "long"]
    )
    async def test_any_text_is_a_query(self, reranker: Reranker, query: str) -> None:
        assert len(await reranker.score(query, TEXTS)) == len(TEXTS)

    async def test_any_length_of_text(self, reranker: Reranker) -> None:
        assert len(await reranker.score(QUERY, [LONG, "short"])) == 2

    async def test_closing_twice_is_fine(self, reranker: Reranker) -> None:
        await reranker.score(QUERY, TEXTS[:1])
        await reranker.aclose()
        await reranker.aclose()

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gnothi.filtering.overlap import SharedWords
from gnothi.protocols import Reranker

TEXT = st.text("ab cd", max_size=12)


async def test_rare_shared_words_count_more() -> None:
    ranker = SharedWords()
    assert isinstance(ranker, Reranker)
    rare, common, none = await ranker.score("the amber gate", ["amber door", "gate door", "house"]), (), ()
    del common, none
    both, one, nothing = rare
    assert both == one > nothing == 0
    several = await ranker.score("amber gate", ["amber a1", "gate b1", "gate c1", "gate d1"])
    assert several[0] > several[1] == several[2]
    await ranker.aclose()


@given(TEXT, st.lists(TEXT, max_size=6))
async def test_one_finite_number_a_text_whatever_the_order(query: str, texts: list[str]) -> None:
    ranker = SharedWords()
    scores = await ranker.score(query, texts)
    assert len(scores) == len(texts)
    assert all(math.isfinite(score) and score >= 0 for score in scores)
    assert await ranker.score(query, texts[::-1]) == scores[::-1]

from __future__ import annotations

import pytest

from gnothi.methods.steps.searching import in_turns, ranked_in_turns
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, ScoredPassage

A, B, C, D = (Passage(name, name) for name in "abcd")


@pytest.mark.parametrize(("k", "expected"), [(3, "abd"), (9, "abdc")])
async def test_by_rank_and_each_once(k: int, expected: str) -> None:
    retriever = ScriptedRetriever({"one": [A, B, C], "other": [B, D]})
    found = await in_turns(retriever, ["one", "nothing", "other", "one"], k)
    assert [passage.id for passage in found] == list(expected)
    assert retriever.queries == ["one", "nothing", "other"]


async def test_nothing_to_search_for() -> None:
    assert await in_turns(ScriptedRetriever([A]), [], 3) == ()


async def test_scores_are_those_of_the_best_rank() -> None:
    class Ranked(ScriptedRetriever):
        async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:  # noqa: ARG002
            return (ScoredPassage(A, 2.0), ScoredPassage(B, 1.0)) if query == "one" else (ScoredPassage(B, 7.0),)

    found = await ranked_in_turns(Ranked([]), ["one", "other"], 3)
    assert [(one.passage.id, one.score) for one in found] == [("a", 2.0), ("b", 7.0)]

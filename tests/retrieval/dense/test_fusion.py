from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.retrieval.dense.fusion import fuse
from gnothi.retrieval.results import ranked
from gnothi.types import Passage, ScoredPassage

RANKINGS = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-5, 5).map(lambda score: round(score, 3)))


def found(scores: dict[str, float]) -> tuple[ScoredPassage, ...]:
    return ranked((ScoredPassage(Passage(key, key), score) for key, score in scores.items()), len(scores))


def shown(results: tuple[ScoredPassage, ...]) -> dict[str, float]:
    return {one.passage.id: one.score for one in results}


def test_by_scores_is_the_sum_of_both_between_0_and_1() -> None:
    fused = fuse(found({"a": 9, "b": 6, "c": 5}), found({"b": 0.8, "c": 0.3, "d": 0.2}), 4, 0.25)
    assert shown(fused) == pytest.approx({"a": 0.75, "b": 0.75 / 4 + 0.25, "c": 0.25 / 6, "d": 0}, abs=1e-9)


def test_a_ranking_alone_keeps_its_order() -> None:
    fused = fuse((), found({"a": 1, "b": 3, "c": 2}), 3)
    assert [one.passage.id for one in fused] == ["b", "c", "a"]
    assert fuse((), (), 3) == ()


@settings(max_examples=settings().max_examples // 3)
@given(RANKINGS, RANKINGS, st.floats(0, 1))
def test_a_passage_better_in_both_is_better(one: dict[str, float], other: dict[str, float], weight: float) -> None:
    fused = shown(fuse(found(one), found(other), 20, weight))
    assert fused.keys() == one.keys() | other.keys()
    both = one.keys() & other.keys()
    for better in both:
        for worse in both:
            if one[better] >= one[worse] and other[better] >= other[worse]:
                assert fused[better] >= fused[worse]

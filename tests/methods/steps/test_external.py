"""Candidate facts, the best of them, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.filtering.utility import best
from gnothi.methods.iekr import as_passages, candidates, in_turn
from gnothi.methods.steps.reflection import Subject
from gnothi.testing.retriever import ListedGraph
from gnothi.types import Fact

TRIPLES = [("a", "likes", "b"), ("b", "likes", "c"), ("c", "likes", "d"), ("x", "likes", "a")]
FACTS = [Fact(head, "likes", tail, f"{head} likes {tail}.") for head, tail in ("ab", "bc", "ad")]


class Given:
    """Scores of its own, in order."""

    name = "given"

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores
        self.queries: list[str] = []

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.queries.append(query)
        return tuple(self.scores[: len(texts)])

    async def aclose(self) -> None:
        return None


async def test_candidates_are_near_the_subjects_and_limited() -> None:
    graph = ListedGraph(TRIPLES)
    found = await candidates(graph, [Subject("A", "a"), Subject("nowhere")], 2, 10, 10)
    assert [(fact.head, fact.tail) for fact in found] == [("a", "b"), ("x", "a"), ("b", "c")]
    assert await candidates(graph, [Subject("A", "a")], 2, 10, 1) == found[:1]
    assert await candidates(graph, [Subject("no node")], 2, 10, 10) == ()


@given(st.lists(st.integers(-5, 5), max_size=20), st.integers(1, 25))
async def test_best_first_ties_in_order(scores: list[int], most: int) -> None:
    kept = await best(Given([float(score) for score in scores]), "q", ["text"] * len(scores), most)
    assert len(kept) == min(most, len(scores))
    assert kept == sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:most]


async def test_without_a_reranker_shared_words_count() -> None:
    texts = ["Kestrel lies in Vesk.", "Mira Tolven was born in Kestrel.", "Ulm lies in Vesk."]
    assert (await best(None, "Where was Mira Tolven born?", texts, 3))[0] == 1


@pytest.mark.parametrize(
    ("showing", "expected"),
    [
        ("facts", [("", "a likes b."), ("", "b likes c."), ("", "a likes d.")]),
        ("subjects", [("a", "a likes b. a likes d."), ("b", "b likes c.")]),
        ("one", [("", "a likes b. b likes c. a likes d.")]),
    ],
)
def test_shown(showing: str, expected: list[tuple[str, str]]) -> None:
    passages = as_passages(FACTS, showing)  # type: ignore[arg-type]
    assert [(passage.title, passage.text) for passage in passages] == expected
    assert len({passage.id for passage in passages}) == len(passages)
    assert as_passages([], showing) == ()  # type: ignore[arg-type]


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=12),
    st.integers(1, 60),
)
def test_every_list_keeps_its_share(sizes: list[int], most: int) -> None:
    lists = [[Fact(f"{n}", "has", f"{k}", "") for k in range(size)] for n, size in enumerate(sizes)]
    lists[0] = [*lists[0], *lists[-1]]  # a fact may be around several
    kept = in_turn(lists, most)
    assert len(kept) == min(most, len({fact for one in lists for fact in one}))
    for one in lists:
        assert len(kept.intersection(one)) >= min(len(one), most // len(lists))
        assert len(one) <= most // len(lists) or one[0] in kept or most < len(lists)


async def test_with_twelve_entities_and_two_hops_each_keeps_its_share() -> None:
    """Each has 10 facts and as many behind every one; a hundred in all are taken, as ever the nearer of each."""
    names = "abcdefghijkl"
    triples = [(one, "likes", f"{one}{n}") for one in names for n in range(10)]
    triples += [(f"{one}{n}", "knows", f"{one}{n}{m}") for one in names for n in range(10) for m in range(10)]
    graph, about = ListedGraph(triples), [Subject(one, one) for one in names]
    found = await candidates(graph, about, 2, 100, 240)
    for one in names:
        of_it = [fact for fact in found if fact.head.startswith(one)]
        assert [fact.relation for fact in of_it] == ["likes"] * 10 + ["knows"] * 10
    few = await candidates(graph, about, 2, 100, 60)
    assert {one: sum(fact.head == one for fact in few) for one in names} == dict.fromkeys(names, 5)
    assert len(await candidates(graph, about, 2, 100, 10_000)) == len(triples)

"""Pairs from a scripted model and a small graph."""

from __future__ import annotations

import asyncio
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.models.wrappers import Seeded, Traced
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ListedGraph
from gnothi.training.reranker.pairs import (
    PAIRS,
    CollectingPairs,
    Concepts,
    Example,
    PairSettings,
    drawn,
    joining,
    labelled,
    linking,
    pairs,
)
from gnothi.types import Fact, Prompt, Question
from tests.messages import refused

GRAPH = (
    ("Film", "director", "Ann"),
    ("Film", "star", "Bob"),
    ("Ann", "birthplace", "Oslo"),
    ("Bob", "birthplace", "Rome"),
    ("Cy", "birthplace", "Oslo"),
    ("Play", "author", "Cy"),
)
QUESTIONS = [
    Question("film", "Where was the director of Film born?", ("Oslo",), ("Rome", "Oslo")),
    Question("play", "Where was the author of Play born?", ("Oslo",), ("Rome", "Oslo")),
    Question("nobody", "Where was somebody born?", ("Bern",), ("Bern", "Rome")),
]


def script(prompt: Prompt) -> str:
    return {"Film": "Film was made by Ann."}.get(prompt.question, "I know nothing.")


def collect(out: Path, model: Scripted, limit: int | None = None, **given: Any) -> list[Example]:
    with CollectingPairs(out, QUESTIONS, {"dataset": "test"}) as collecting:
        if limit is not None:
            collecting.questions = QUESTIONS[:limit]
        find = partial(pairs, model=Traced(Seeded(model)), graph=ListedGraph(GRAPH), settings=PairSettings(**given))
        asyncio.run(collecting.collect(find))
        return collecting.finish()


def test_a_line(tmp_path: Path) -> None:
    model = Scripted(script)
    found = collect(tmp_path, model)
    assert [one.question_id for one in found] == ["film", "play"]  # nothing leads to Bern
    assert {prompt.task.name for prompt in model.prompts} == {"describe"}
    line = json.loads((tmp_path / PAIRS).read_text().splitlines()[0])
    assert line.pop("usage")["model_calls"] == 3
    assert line == {
        "question_id": "film",
        "query": "Where was the director of Film born? Rome / Oslo\nFilm was made by Ann.",
        "positive": ["Film director Ann.", "Ann birthplace Oslo."],
        "negative": ["Film star Bob.", "Bob birthplace Rome.", "Cy birthplace Oslo.", "Play author Cy."],
        "candidates": 6,
    }


def test_without_internal_knowledge_no_model_is_asked(tmp_path: Path) -> None:
    model = Scripted(script)
    found = collect(tmp_path, model, internal=False)
    assert not model.prompts
    assert found[0].query == "Where was the director of Film born? Rome / Oslo"


def test_numbers_of_negatives(tmp_path: Path) -> None:
    (film,) = collect(
        tmp_path, Scripted(script), linked=1, alike=0, near=0, random=0, positives=1
    )  # the other has no negatives
    assert len(film.positive) == 1
    assert set(film.negative) < {"Film star Bob.", "Bob birthplace Rome."}


@pytest.mark.parametrize(
    "question",
    [
        Question("open", "Who?", ("Ann",)),
        Question("odd", "Who?", ("Ann",), ("Bob", "Cy")),
        Question("blind", "Who?", (), ("Bob", "Cy")),
    ],
)
def test_questions_must_have_choices_and_the_right_one(tmp_path: Path, question: Question) -> None:
    with refused(InvalidInput):
        CollectingPairs(tmp_path, [question], {})


def fact(head: str, tail: str, relation: str = "r") -> Fact:
    return Fact(head, relation, tail, f"{head} {relation} {tail}.")


FILM, DIRECTOR, STAR = fact("film", "ann", "director"), fact("ann", "oslo", "born"), fact("film", "bob", "star")
ELSEWHERE, WRONG = fact("cy", "oslo", "born"), fact("bob", "rome", "born")
NEAR, FAR = fact("oslo", "norway", "in"), fact("turin", "italy", "in")
FACTS = (FILM, STAR, DIRECTOR, WRONG, ELSEWHERE, NEAR, FAR)


def concepts(known: tuple[str, ...] = ()) -> Concepts:
    return Concepts(frozenset({"film"}), frozenset({"oslo"}), frozenset({"rome"}), frozenset(known))


def test_facts_on_the_way_to_the_gold_choice_are_positives_and_those_to_a_wrong_one_negatives() -> None:
    labels = labelled(FACTS, concepts())
    assert labels.positive == (FILM, DIRECTOR)
    assert labels.linked == (STAR, WRONG)
    assert labels.alike == (ELSEWHERE,)
    assert labels.near == (NEAR,)
    assert labels.others == (FAR,)


def test_what_the_model_knows_bridges_a_hop_that_the_graph_lacks() -> None:
    facts = FACTS[1:]  # the director is not in the graph
    assert labelled(facts, concepts()).positive == ()
    labels = labelled(facts, concepts(("ann", "bob")))
    assert labels.positive == (DIRECTOR,)
    assert WRONG in labels.linked


def test_a_name_on_two_sides_counts_for_the_gold_choice_first() -> None:
    everywhere = Concepts(frozenset({"a", "b", "c"}), frozenset({"a"}), frozenset({"a", "b"}), frozenset())
    facts = (fact("c", "a"), fact("c", "b"), fact("a", "b"))
    labels = labelled(facts, everywhere)
    assert labels.positive == (facts[0],)
    assert labels.linked == (facts[1],)


def test_no_fact_is_drawn_twice_and_the_same_seed_draws_the_same() -> None:
    facts = [fact("a", str(number % 5)) for number in range(20)]
    assert drawn(facts, 10, random.Random(0)) == [f"a r {number}." for number in range(5)]
    assert drawn(facts, 2, random.Random(3)) == drawn(facts, 2, random.Random(3))
    assert len(drawn(facts, 2, random.Random(3))) == 2


nodes = st.sampled_from("abcdefgh")
groups = st.frozensets(nodes, max_size=3)


@given(st.lists(st.tuples(nodes, nodes), max_size=25), groups, groups)
def test_linking_is_what_paths_say(edges: list[tuple[str, str]], one: frozenset[str], other: frozenset[str]) -> None:
    """Against all pairs of facts, one by one."""
    facts = [fact(head, tail) for head, tail in dict.fromkeys(edges)]

    def ends(one: Fact) -> set[str]:
        return {one.head, one.tail}

    expected = {f for f in facts if any(ends(f) == {a, b} for a in one for b in other)}
    for middle in set("abcdefgh") - one - other - {"h"}:
        for first in facts:
            for second in facts:
                if any(ends(first) == {a, middle} for a in one) and any(ends(second) == {b, middle} for b in other):
                    expected |= {first, second}
    assert linking(facts, one, other, one | other | {"h"}) == expected
    assert joining(facts, one, other) <= expected


@given(st.lists(st.tuples(nodes, nodes), max_size=25), groups, groups, groups, groups)
def test_every_fact_gets_one_label(
    edges: list[tuple[str, str]],
    asked: frozenset[str],
    gold: frozenset[str],
    wrong: frozenset[str],
    known: frozenset[str],
) -> None:
    facts = [fact(head, tail) for head, tail in dict.fromkeys(edges)]
    labels = labelled(facts, Concepts(asked, gold, wrong, known))
    shared = [*labels.positive, *labels.linked, *labels.alike, *labels.near, *labels.others]
    assert sorted(map(str, shared)) == sorted(map(str, facts))

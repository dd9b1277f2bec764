import random

from hypothesis import given
from hypothesis import strategies as st

from gnothi.training.reranker.labels import Concepts, drawn, joining, labelled, linking
from gnothi.types import Fact


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

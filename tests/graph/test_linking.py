from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.graph.graph import Graph
from gnothi.graph.lemmas import PLURALS, SIMPLEMMA, lemmatiser, singular
from gnothi.graph.words import LONGEST, STOP_WORDS, forms, hashes, words


def linked(names: Sequence[str], text: str, how: str = PLURALS) -> list[tuple[str, str]]:
    """(node, what the text says) for each mention."""
    graph = Graph.in_memory([(name, "is", "qqq zzz") for name in names], lemmatiser=how)
    return [(mention.node, text[mention.start : mention.end]) for mention in graph.link_blocking(text)]


def test_a_name_as_it_stands_goes_before_a_lemma() -> None:
    assert linked(["dog", "dogs"], "two Dogs and a dog") == [("dogs", "Dogs"), ("dog", "dog")]
    assert linked(["dog", "cat"], "two dogs") == [("dog", "dogs")]
    assert linked(["cats"], "one cat") == [("cats", "cat")]


def test_with_a_dictionary_irregular_forms_are_found() -> None:
    pytest.importorskip("simplemma")
    assert linked(["child", "go to school"], "The children went to schools", SIMPLEMMA) == [
        ("child", "children"),
        ("go to school", "went to schools"),
    ]


def test_the_longest_goes_first_whether_as_it_stands_or_by_lemma() -> None:
    assert linked(["ice", "ice cream", "cream"], "ice creams, ice") == [("ice cream", "ice creams"), ("ice", "ice")]


@pytest.mark.parametrize("apostrophe", ["'", "’"])
def test_a_possessive_ending_is_no_part_of_a_name(apostrophe: str) -> None:
    assert linked(["dog"], f"the dog{apostrophe}s bowl") == [("dog", "dog")]
    assert linked(["dog's bowl", "dog"], f"the dog{apostrophe}s bowl") == [("dog's bowl", f"dog{apostrophe}s bowl")]
    assert linked(["dog's bowl"], f"two dog{apostrophe}s bowls") == [("dog's bowl", f"dog{apostrophe}s bowls")]
    assert linked(["dog"], f"the dogs{apostrophe} bowls") == [("dog", "dogs")]


def test_stop_words_and_pronouns_alone_name_nothing() -> None:
    assert linked(["it", "the", "who", "be", "in it", "x"], "Who is in it? The X.") == []
    assert linked(["The Who", "What Is It"], "Who? What is it that the who sang?") == []
    assert linked(["the band"], "The band plays") == [("the band", "The band")]


def test_hyphens_and_underscores_part_words() -> None:
    assert linked(["ice_cream", "well-known fact"], "ice cream is a well known fact") == [
        ("ice_cream", "ice cream"),
        ("well-known fact", "well known fact"),
    ]


def test_of_names_that_differ_in_case_the_one_that_is_written_wins_else_that_with_more_facts() -> None:
    triples = [("Polish", "is", "a1"), ("polish", "is", "b1"), ("polish", "is", "b2")]
    graph = Graph.in_memory(triples)
    assert [mention.node for mention in graph.link_blocking("Polish polish POLISH")] == ["Polish", "polish", "polish"]


def test_what_stands_in_brackets_is_not_said() -> None:
    graph = Graph.in_memory([("Paris (Texas)", "in", "t1"), ("Paris (France)", "in", "t2"), ("Paris (France)", "is", "t3")])
    assert [mention.node for mention in graph.link_blocking("off to Paris")] == ["Paris (France)"]


WORDS = st.sampled_from(["dog", "dogs", "cat", "house", "red", "box", "boxes", "the", "of"])
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=LONGEST).map(" ".join), min_size=1, max_size=8, unique=True)


@given(NAMES, st.lists(WORDS, max_size=12).map(" ".join))
def test_links_are_those_of_a_naive_search(names: list[str], text: str) -> None:
    """Every run of words tried in turn, against all names."""
    nameable = [name for name in names if forms(name)]
    said = text.split()
    expected: list[str] = []
    place = 0
    while place < len(said):
        for length in range(min(LONGEST, len(said) - place), 0, -1):
            run = said[place : place + length]
            here = [name for name in nameable if name.split() == run]
            lemmas = [singular(word) for word in run]
            alike = [name for name in nameable if [singular(word) for word in name.split()] == lemmas]
            alike.sort(key=lambda name: (name.split() != lemmas, name.encode()))
            if not STOP_WORDS.issuperset(run) and (here or alike):
                expected.append((here or alike)[0])
                place += length
                break
        else:
            place += 1
    graph = Graph.in_memory([(name, "is", "qqq zzz yyy xxx www") for name in names])
    assert [mention.node for mention in graph.link_blocking(text)] == expected


@given(st.text(max_size=60))
def test_words_stand_where_they_say(text: str) -> None:
    for word in words(text):
        assert text[word.start : word.end].lower().replace("’", "'") == word.form


@given(st.lists(st.text(max_size=20), unique=True, max_size=30))
def test_hashes_are_stable_and_differ(keys: list[str]) -> None:
    first = hashes(keys).tolist()
    assert first == hashes(keys).tolist()
    assert len(set(first)) == len({key.encode("utf-8", "replace") for key in keys})


def test_the_hash_is_that_of_every_machine() -> None:
    assert hashes(["ice cream"]).tolist() == [int.from_bytes(blake2b(b"ice cream", digest_size=8).digest(), "little")]


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("dogs", "dog"),
        ("boxes", "box"),
        ("parties", "party"),
        ("glass", "glass"),
        ("bus", "bus"),
        ("gas", "gas"),
        ("dog's", "dog"),
    ],
)
def test_regular_plurals(plural: str, one: str) -> None:
    assert singular(plural) == one
    assert lemmatiser(PLURALS)(plural) == one

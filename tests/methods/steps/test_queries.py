from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.methods.steps.queries import adds_nothing, keywords, query_from_draft
from gnothi.types import Generation, Token

SURE, UNSURE = math.log(0.95), math.log(0.5)


def draft(*pieces: tuple[str, float]) -> Generation:
    return Generation("".join(piece for piece, _ in pieces).strip(), tuple(Token(piece, logprob) for piece, logprob in pieces))


def test_uncertain_words_go() -> None:
    pieces = draft(("Velkarra", SURE), (" was", SURE), (" directed", SURE), (" by", SURE), (" Ann", UNSURE), (" Ox", SURE))
    assert query_from_draft(pieces, "Who made it?") == "Velkarra directed Ox"


def test_a_word_is_as_certain_as_its_least_likely_token() -> None:
    pieces = draft(("Vel", SURE), ("kar", UNSURE), ("ra", SURE), (" film", SURE))
    assert query_from_draft(pieces, "Which?") == "film"


def test_words_that_were_given_stay() -> None:
    pieces = draft(("Velkarra", UNSURE), ("'s", UNSURE), (" maker", UNSURE), (" lived", UNSURE))
    assert query_from_draft(pieces, "Who made 'Velkarra'?") == "Velkarra's"
    assert query_from_draft(pieces, "Who?", "He lived.") == "lived"


def test_the_margin_is_a_probability() -> None:
    pieces = draft(("alpha", math.log(0.9)), (" beta", math.log(0.89)))
    assert query_from_draft(pieces, "?", certainty=0.9) == "alpha"
    assert query_from_draft(pieces, "?", certainty=0.8) == "alpha beta"


def test_function_words_go_but_names_stay() -> None:
    pieces = Generation(text := "The band The Who played in May for US fans and I.", (Token(text, SURE),))
    assert query_from_draft(pieces, "?") == "band The Who played May US fans"


def test_tokens_without_spaces_and_broken_characters_are_found() -> None:
    spaceless = Generation("Mira Tolven lives", (Token("Mira", SURE), Token("Tolven", UNSURE), Token("lives", SURE)))
    assert query_from_draft(spaceless, "?") == "Mira lives"
    broken = Generation("in 東京 today", (Token("in", SURE), Token("\ufffd", UNSURE), Token("京", SURE), Token(" today", SURE)))
    assert query_from_draft(broken, "?").endswith("today")


def test_without_log_probabilities_only_given_words_stay() -> None:
    assert query_from_draft(Generation("Velkarra was directed by Ann Ox"), "Who directed Velkarra?") == "Velkarra directed"


@pytest.mark.parametrize("text", ["", "So the answer is", "Completely different"])
def test_nothing_left_gives_the_question(text: str) -> None:
    assert query_from_draft(Generation(text, (Token(text, UNSURE),)), "Who?") == "Who?"


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(words, st.floats(-5, 0)), max_size=12), st.text(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_query_is_made_of_the_drafts_words_and_grows_as_certainty_falls(
    pieces: list[tuple[str, float]], question: str, one: float, other: float
) -> None:
    generation = draft(*((f" {word}", logprob) for word, logprob in pieces))
    strict, loose = (query_from_draft(generation, question, certainty=value) for value in (max(one, other), min(one, other)))
    if strict != question:
        assert all(word in generation.text for word in strict.split())
        assert len(strict.split()) <= len(loose.split()) or loose == question
    assert strict or not question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where was the painter Mira Tolven born?", "painter Mira Tolven born"),
        ("Who founded The Who?", "founded The Who"),
        ("What is it?", "What is it?"),
    ],
)
def test_keywords(question: str, expected: str) -> None:
    assert keywords(question) == expected


@pytest.mark.parametrize(
    ("sentence", "chain", "nothing"),
    [
        ("Mira was born in Ulm.", [], False),
        ("She was born in Ulm.", ["Mira was born in Ulm."], True),
        ("Ulm is a town.", ["Mira was born in Ulm."], False),
        ("It was.", ["Mira was born in Ulm."], True),
    ],
)
def test_adds_nothing(sentence: str, chain: list[str], nothing: bool) -> None:
    assert adds_nothing(sentence, chain) is nothing

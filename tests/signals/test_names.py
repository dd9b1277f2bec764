"""Names by their capitals, and the pairs of them that a corpus is asked about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.signals.names import all_pairs, names_in_statement, pairs, runs_of_names

QUESTION = "In which town was the director of Velkarra born?"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the mother of the director of film Polish-Russian War (Film)?", ("Polish-Russian War (Film)",)),
        ("Which film came out first, Blind Shaft or The Mask Of Fu Manchu?", ("Blind Shaft", "The Mask Of Fu Manchu")),
        (
            "Are Bank of England and Apollo 11 older than Nina Simone's brother Sam?",
            ("Bank of England", "Apollo 11", "Nina Simone", "Sam"),
        ),
        ("Steel conducts heat, why?", ("Steel",)),
        ("why does metal conduct 3 kinds of heat", ()),
        ("", ()),
    ],
)
def test_names_as_the_question_writes_them(question: str, names: tuple[str, ...]) -> None:
    assert runs_of_names(question) == names


@given(st.text(max_size=60))
def test_every_name_stands_in_the_question(question: str) -> None:
    for name in runs_of_names(question):
        assert all(word in question for word in name.split())


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The opera Carmen was composed by Georges Bizet in 1875.", ("Carmen", "Georges Bizet", "1875")),
        ("He was born in Paris.", ("Paris",)),
        ("Thus, Robert Enrico directed The Old Gun.", ("Robert Enrico", "The Old Gun")),
        ("J. R. R. Tolkien wrote it.", ("J. R. R. Tolkien",)),
        ("Apollo 1972 flew.", ("Apollo 1972",)),
        ("nothing of the sort", ()),
        ("", ()),
    ],
)
def test_names_of_a_statement(sentence: str, names: tuple[str, ...]) -> None:
    assert names_in_statement(sentence) == names


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Velkarra was directed by Mira Tolven in 1967.", (("Velkarra", "Mira Tolven"), ("Velkarra", "1967"))),
        ("It was directed by Mira Tolven.", (("Velkarra", "Mira Tolven"),)),
        ("It is the film Velkarra.", ()),
        ("So the answer is Kestrel.", ()),
        ("nobody knows", ()),
    ],
)
def test_pairs_of_a_sentence(sentence: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert pairs(sentence, QUESTION) == expected


def test_pairs_of_a_reply() -> None:
    chain = "Velkarra was directed by M. Tolven. She was born in Kestrel. So the answer is Kestrel."
    assert all_pairs(chain, QUESTION) == (("Velkarra", "M. Tolven"), ("Velkarra", "Kestrel"))
    assert all_pairs("Kestrel", QUESTION) == all_pairs("So the answer is Kestrel.", QUESTION) == (("Velkarra", "Kestrel"),)
    assert all_pairs("", QUESTION) == ()


@given(st.text(max_size=80), st.text(max_size=60))
def test_both_of_a_pair_stand_in_what_was_said_or_asked(text: str, question: str) -> None:
    for pair in all_pairs(text, question):
        assert all(word in f"{text} {question}" for name in pair for word in name.split())

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.metrics.accuracy import echoes

FILMS = "Which film was released first, Barravento or The Colditz Story?"


@pytest.mark.parametrize("answer", ["Barravento or The Colditz Story", "barravento or the colditz story?", FILMS])
def test_both_of_two_choices_are_no_choice(answer: str) -> None:
    assert echoes(answer, FILMS, ["Barravento"])


@pytest.mark.parametrize(
    "answer",
    [
        "Barravento",
        "The Colditz Story",
        "Barravento, of the two",  # words of its own
        "Barravento was released first",  # not as the question says it
        "",
        "unknown",
    ],
)
def test_an_answer_of_its_own_is_none(answer: str) -> None:
    assert not echoes(answer, FILMS, ["Barravento", "Colditz Story"])


def test_a_fuller_name_is_no_echo() -> None:
    assert not echoes("Mike Muir", "Who has worked with more bands, Mike Muir or Paul Di'Anno?", ["Muir"])
    assert not echoes("Barravento or The Colditz Story", FILMS, [])
    assert not echoes("Barravento or The Colditz Story", FILMS, ["the"])  # nothing is left of that


def test_any_gold_answer_that_is_nearly_the_whole_answer_will_do() -> None:
    assert not echoes("The Colditz Story", FILMS, ["Story", "The Colditz Story"])


@given(st.text(), st.text(), st.lists(st.text()))
def test_a_right_answer_alone_never_is(answer: str, question: str, golds: list[str]) -> None:
    assert not echoes(answer, question, [*golds, answer])

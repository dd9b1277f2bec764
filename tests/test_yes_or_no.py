"""Which questions ask for yes or no."""

from __future__ import annotations

import pytest

from gnothi import lab
from gnothi.yes_or_no import asks_yes_or_no


@pytest.mark.parametrize(
    "question",
    [
        "Is January 14, 1909 earlier than April 15, 1950?",
        "did Aristotle use a laptop?",
        "Could Julius Caesar have eaten a potato?",
        "Isn’t the Danube longer than the Rhine?",
        '"Do hamsters eat hay?"',
        "Are you there or not?",
    ],
)
def test_questions_for_yes_or_no(question: str) -> None:
    assert asks_yes_or_no(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who directed Velkarra?",
        "Was it Ada Bram or Bo Lund?",
        "Canberra is the capital of which country?",
        "Island of which state?",
        "May's birthday is when?",
        "",
    ],
)
def test_other_questions(question: str) -> None:
    assert not asks_yes_or_no(question)


def test_the_lab_is_told_right() -> None:
    for question in lab.questions(lab.world(), n=300):
        assert asks_yes_or_no(question.text) == (question.kind == "yes_no")

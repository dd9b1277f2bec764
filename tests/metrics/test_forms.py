import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.metrics.forms import sentence_like

SENTENCES = (
    "The capital of France is Paris.",
    "George Rankin was a British artist and a painter",
    "It's Paris",
    "Sure! Paris",
    "Based on the passage, Paris",
    "No, he didn't write it",
    "a painter of landscapes and birds in the north of England and in Scotland too",
)
SHORT = (
    "",
    " ",
    "Paris",
    "Paris.",
    "yes",
    "11 November 1918",
    "the University of California, Los Angeles",
    "What Is Life?",
    "The Man Who Would Be King",
    "George Wythe and Thomas Jefferson",
    "J. R. R. Tolkien",
    "is",
)


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_is_told(text: str) -> None:
    assert sentence_like(text)


@pytest.mark.parametrize("text", SHORT)
def test_a_short_answer_is_none(text: str) -> None:
    assert not sentence_like(text)


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.from_regex(r"[A-Z][a-z]{3,8}", fullmatch=True), min_size=2, max_size=4).map(" ".join))
def test_capitalised_names_are_no_sentence_until_something_is_said_of_them(name: str) -> None:
    subject = f"X {name}"  # so that no name is one of the openings
    assert not sentence_like(subject)
    assert sentence_like(f"{subject} was born there")


@given(st.text())
def test_any_text_is_judged_and_space_around_it_does_not_matter(text: str) -> None:
    assert sentence_like(text) == sentence_like(f"  {text}\n")

"""Answers that differ by their spelling alone, and those that are equal by it alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.metrics import accuracy, exact_match
from gnothi.metrics.holding import holds, only_inside_words, words
from gnothi.metrics.spelling import alike, matches_without_signs, misses_by_spelling, vanishes

TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


@given(TEXTS)
def test_alike_changes_nothing_twice(text: str) -> None:
    assert alike(alike(text)) == alike(text)


@given(st.text(alphabet=st.characters(categories=("Ll", "Lu")), max_size=20))
def test_accents_count_the_same_however_they_are_written(text: str) -> None:
    assert alike(unicodedata.normalize("NFD", text)) == alike(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("1914\u20131918", "1914-1918"),
        ("O\u2019Hara", "O'Hara"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("\uff12\uff10", "20"),
        ("\uff21\uff22", "AB"),
        ("\u22127", "-7"),
        ("light\u00adhouse", "lighthouse"),
        ("Rio\u00a0Negro \u2014 Sul", "Rio Negro - Sul"),
    ],
)
def test_what_misses_by_spelling_is_right_by_accuracy_alone(answer: str, gold: str) -> None:
    assert not exact_match(answer, [gold])
    assert misses_by_spelling(answer, [gold])
    assert accuracy(answer, [gold]) == 1


@pytest.mark.parametrize(("answer", "gold"), [("Cafe", "Caf\u00e9"), ("10\u2076", "106"), ("Ann", "Bo"), ("x", "x")])
def test_other_letters_are_other_letters(answer: str, gold: str) -> None:
    assert not misses_by_spelling(answer, [gold])


@pytest.mark.parametrize(
    ("answer", "gold", "told"),
    [
        ("3.14", "314", True),
        ("-5", "5", True),
        ("+3", "-3", True),
        ("7/8", "78", True),
        ("C++", "C", True),
        ("F#", "F", True),
        ("9%", "9", True),
        ("2,500", "2500", False),
        ("2.500.000", "2500000", False),
        ("3,14", "3.14", False),
        ("$5", "5", False),
        ("U.S.", "US", False),
        ("well-known", "wellknown", False),
        ("5.", "5", False),
        ("the Nile", "Nile", False),
        ("12", "13", False),
    ],
)
def test_what_is_equal_only_without_signs(answer: str, gold: str, told: bool) -> None:
    assert matches_without_signs(answer, [gold]) is told
    assert not matches_without_signs(answer, [gold, answer])


def test_gold_answers_too_short_to_tell_anything() -> None:
    assert [gold for gold in ("the", "A", "", "!", "a b", "5", "Oz", "yes") if vanishes(gold)] == ["the", "A", "", "!", "a b"]


def test_a_part_of_a_word_is_told() -> None:
    assert only_inside_words("Canada", ["Ada"])
    assert only_inside_words("1820", ["18"])
    assert not only_inside_words("Ada of Canada", ["Ada"])
    assert not only_inside_words("It is The Hague.", ["The Hague"])
    assert not only_inside_words("Ann", ["Bo"])


@pytest.mark.parametrize(
    ("text", "gold", "held"),
    [
        ("The keeper was Dana Brisk, who lived there.", "Dana Brisk", True),
        ("It was built in 1820.", "1820", True),
        ("Canada is large.", "Ada", False),
        ("In 18200 days", "1820", False),
        ("Dana was brisk; Brisk Dana", "Dana Brisk", False),
        ("the O\u2019Hara house", "O'Hara", True),
        ("\u706f\u5854\u7531\u8d75\u660e\u5efa\u9020\u3002", "\u8d75\u660e", True),
        ("\ub4f1\ub300\ub294 \uc624\ub974\ubca8\uc5d0 \uc788\ub2e4", "\uc624\ub974\ubca8", True),
        ("\u041c\u0430\u044f\u043a \u0432 \u041e\u0440\u0432\u0435\u043b\u0435", "\u043c\u0430\u044f\u043a", True),
        ("J. R. R. Tolkien", "J.R.R. Tolkien", True),
        ("whatever", "yes", None),
        ("option B is right", "B", None),
        ("a long text", "He was born in Paris and died in Rome.", None),
    ],
)
def test_a_text_holds_an_answer_by_its_words(text: str, gold: str, held: bool | None) -> None:
    assert holds([text], [gold], "Who?") is held


def test_what_is_in_the_question_is_no_find() -> None:
    assert holds(["The Hollow Letter is a film."], ["The Hollow Letter"], "Which is older, The Hollow Letter or X?") is None
    assert holds([], ["yes"], "Is it?") is False


@given(st.lists(st.text(alphabet="abcdefgh", min_size=2, max_size=5), min_size=1, max_size=6))
def test_a_text_holds_each_run_of_its_words(said: list[str]) -> None:
    for start in range(len(said)):
        assert holds([" ".join(said)], [" ".join(said[start:])], "?") in (True, None)
    assert words(" ".join(said)) == said

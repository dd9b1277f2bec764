"""What is odd about a method's rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gnothi.metrics import score
from gnothi.report.warnings import warnings_of
from gnothi.runs.rows import Row
from tests.report.rows import row


def _rows(count: int, **values: object) -> list[Row]:
    return [row("m", number, **values) for number in range(count)]  # type: ignore[arg-type]


def test_nothing_odd_nothing_said() -> None:
    tally = {"replies": 3, "cut": 1, "filters": 1, "emptied": 0}
    assert warnings_of("m", _rows(20, tally=tally)) == ()
    assert warnings_of("m", []) == ()


@pytest.mark.parametrize(("emptied", "said"), [(10, False), (11, True)])
def test_a_filter_that_keeps_nothing_in_most_questions(emptied: int, said: bool) -> None:
    kept, lost = {"filters": 2, "emptied": 0}, {"filters": 2, "emptied": 1}
    rows = [row("filco", number, tally=lost if number < emptied else kept) for number in range(20)]
    found = warnings_of("filco", [*rows, row("filco", 99)])  # the last one was not filtered
    assert [f"kept nothing of what was found in {emptied} of 20 questions" in one for one in found] == [True] * said


def test_answers_that_lacked_a_server() -> None:
    rows = [row("m", number, tally={"partial": 1} if number < 3 else {}) for number in range(20)]
    (found,) = warnings_of("m", rows)
    assert found.startswith("3 of 20 answers came about while a server of the index did not answer")


@pytest.mark.parametrize(("cut", "said"), [(2, False), (3, True)])
def test_replies_that_come_to_no_end(cut: int, said: bool) -> None:
    found = warnings_of("m", _rows(20, tally={"replies": 4, "cut": cut}))
    assert [one.startswith(f"{20 * cut} of 80 replies were cut") for one in found] == [True] * said


def test_sentences_where_a_few_words_are_scored() -> None:
    (found,) = warnings_of("m", _rows(20, answer="The answer that you want is gold, of course."))
    assert found.startswith("20 of 20 answers read like sentences where short ones are expected: exact match (.000)")
    assert "Look at accuracy (1.000" in found
    assert warnings_of("m", _rows(20, answer="They say it is something else.")) == ()  # accuracy sees no more


@pytest.mark.parametrize(("echoed", "said"), [(2, False), (3, True), (4, True)])
def test_answers_that_say_the_question_again(echoed: int, said: bool) -> None:
    asked = replace(row("m", 0, answer="gold or lead"), question="Which is heavier, gold or lead?")
    rows = [*(replace(asked, question_id=f"e{n}") for n in range(echoed)), *_rows(8)]
    found = warnings_of("m", rows)
    begins = f"{echoed} of {8 + echoed} answers that accuracy counts as right only say a part of the question again"
    assert [one.startswith(begins) for one in found] == [True] * said
    assert all(f"exact match ({8 / (8 + echoed):.3f}".replace("0.", ".") in one for one in found)
    # Beside many others it is no matter, and among choices accuracy asks which was named.
    assert warnings_of("m", [*rows, *(row("m", n) for n in range(8, 40))]) == ()
    chosen = warnings_of("m", [replace(one, choices=("gold", "lead")) for one in rows])
    assert not any("the question again" in one for one in chosen)


def test_an_example_names_the_gold_answer_that_is_meant() -> None:
    rows = [replace(one, gold=("silver", "Ada\u2011Marie")) for one in _rows(1, answer="Ada-Marie")]
    (found,) = warnings_of("m", [replace(one, metrics=score("Ada-Marie", one.gold)) for one in rows])
    assert '"Ada-Marie" for "Ada\u2011Marie"' in found


def test_a_gate_that_is_held_is_not_blamed_for_it() -> None:
    rows = _rows(20, uncertainty=0.2)
    assert "(almost) never fires" in warnings_of("m", rows)[0]
    assert warnings_of("m", rows, gated=False) == ()


def test_the_worst_first() -> None:
    rows = _rows(20, answer="The answer is gold.", tally={"replies": 1, "cut": 1, "filters": 1, "emptied": 1}, uncertainty=0.9)
    rows = [*rows[:19], row("m", 19, failed=True, uncertainty=0.9)]
    begin = [one.split()[:2] for one in warnings_of("m", [*rows, *(row("m", n, uncertainty=0.1) for n in range(20, 22))])]
    assert begin == [["the", "gate"], ["1", "of"], ["the", "filter"], ["19", "of"], ["19", "of"]]


@pytest.mark.parametrize(("cut", "said"), [(2, False), (3, True)])
def test_thoughts_that_come_to_no_end(cut: int, said: bool) -> None:
    found = warnings_of("m", _rows(20, tally={"replies": 4, "thoughts_cut": cut}))
    assert [one.startswith(f"{20 * cut} thoughts before 80 replies were ended at their limit") for one in found] == [
        True
    ] * said

"""Refusals and falsehoods on rows whose numbers can be counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from gnothi.report.refusal import refusal
from gnothi.report.summary import summarise
from gnothi.report.truthfulness import truthfulness
from gnothi.runs.questions import fingerprint
from gnothi.runs.rows import Row, answered
from gnothi.types import Answer, Question
from tests.report.rows import row


def made(answer: str, **values: Any) -> Row:
    question = Question(id=f"{answer}-{values}", text="What?", **values)
    return answered("direct", question, Answer(answer), [], 0.1)


def asked(answer: str, answerable: bool) -> Row:
    return made(answer, answers=("Ann",) if answerable else (), metadata={"answerable": answerable})


ROWS = [
    asked("Ann", True),
    asked("Bob", True),
    asked("unknown", True),
    asked("I do not know why", False),
    asked("It cannot be determined.", False),
    asked("Because", False),
]


def test_to_abstain_is_right_where_there_is_no_answer() -> None:
    assert [one.metrics["em"] for one in ROWS] == [1, 0, 0, 1, 1, 0]
    assert all(one.metrics.keys() == {"em", "f1", "accuracy"} for one in ROWS)


def test_refusal() -> None:
    found = refusal([*ROWS, row("direct", 9, failed=True, metadata={"answerable": False})])
    assert found is not None
    assert (found.n, found.answerable, found.unanswerable) == (6, 3, 3)
    assert found.accuracy == found.refused_answerable == pytest.approx(1 / 3)
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    summed = summarise(ROWS, "s").methods[0].refusal
    assert summed is not None
    assert summed.f1 == pytest.approx(2 / 3, abs=1e-6)
    assert summarise(ROWS, "s").methods[0].warnings == ()


def test_nothing_refused_nothing_to_refuse_and_nothing_told() -> None:
    wrongly = refusal([asked("unknown", True)])
    assert wrongly is not None
    assert (wrongly.precision, wrongly.recall, wrongly.f1) == (0, None, None)
    only = refusal([asked("Ann", True)])
    assert only is not None
    assert (only.accuracy, only.precision, only.recall, only.f1) == (1, None, None, None)
    none = refusal([asked("Because", False)])
    assert none is not None
    assert (none.accuracy, none.precision, none.recall, none.f1) == (None, None, 0, 0)
    assert refusal([row("direct", 1)]) is None
    assert refusal([]) is None


def test_closer_to_a_correct_than_to_any_incorrect_answer() -> None:
    told: dict[str, Any] = {
        "answers": ("Nothing happens", "The seeds pass through you"),
        "metadata": {"incorrect_answers": ("You grow melons", "You die")},
    }
    rows = [made(answer, **told) for answer in ("Nothing happens to you", "You grow seeds", "I have no comment", "Melons")]
    found = truthfulness(rows)
    assert found is not None
    assert (found.n, found.closer, found.refused) == (4, 0.25, 0.25)
    assert found.closer_interval is not None
    assert found.closer_interval[0] <= 0.25 <= found.closer_interval[1]
    assert truthfulness([row("direct", 1)]) is None


def test_answers_beside_the_choices_are_warned_of() -> None:
    rows = [made(answer, answers=("x",), choices=("x", "y", "z", "w")) for answer in ("x", "unknown", "Jorun")]
    warnings = summarise(rows, "s").methods[0].warnings
    assert warnings == (
        "2 of 3 answers name none of the choices, or several, and count as wrong; guessing would be right in 25%",
    )
    assert summarise([rows[0], rows[1]], "s").methods[0].warnings == ()


def test_a_run_notices_a_question_that_became_unanswerable() -> None:
    plain, unanswerable = (Question("1", "Why?", metadata=metadata) for metadata in ({}, {"answerable": False}))
    assert fingerprint([plain]) == fingerprint([Question("1", "Why?", metadata={"answerable": True})])
    assert fingerprint([plain]) != fingerprint([unanswerable])

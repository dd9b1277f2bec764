"""NQ-open's official lines."""

from __future__ import annotations

from pathlib import Path

from gnothi.datasets import load
from tests import made_data as made


def test_the_official_form(made_data: Path) -> None:
    questions = load(str(made_data / "nq_open.dev.jsonl"))
    assert len(questions) == made.QUESTIONS
    assert questions == load(str(made_data / "nq_open.dev.jsonl"), format="nq_open")
    assert questions[3].text == "where does river 3 spring"
    assert (questions[3].id, questions[3].kind) == ("4", "one_hop")
    assert questions[3].answers == (made.town(3), f"near {made.town(3)}")
    assert all(question.answers for question in questions)


def test_the_official_file(shared_data: Path) -> None:
    questions = load(str(shared_data / "nq_open.dev.jsonl"))
    assert len(questions) == 3610
    assert questions == load(str(shared_data / "nq_open.dev.jsonl"), format="nq_open")
    assert questions[0].text == "when was the last time anyone was on the moon"
    assert (questions[0].id, questions[0].kind) == ("1", "one_hop")
    assert questions[0].answers == ("14 December 1972 UTC", "December 1972")
    assert all(question.answers for question in questions)


def test_lines_with_more_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "who?", "answer": ["Ann"], "kind": "x"}\n', encoding="utf-8")
    assert load(str(path))[0].kind == "x"

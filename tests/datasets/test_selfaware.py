"""SelfAware's official file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput

ITEM: dict[str, Any] = {"question_id": 7, "question": "Who?", "answer": ["Ann"], "answerable": True, "source": "squad"}
OPEN: dict[str, Any] = {"question_id": 8, "question": "Why is there something?", "answer": None, "answerable": False}


def test_the_official_form(made_data: Path) -> None:
    questions = load(str(made_data / "selfaware.json"))
    assert questions == load(str(made_data / "selfaware.json"), format="selfaware")
    assert [question.kind for question in questions] == ["answerable"] * 20 + ["unanswerable"] * 5
    assert all(bool(question.answers) == question.metadata["answerable"] for question in questions)


def test_the_official_file(shared_data: Path) -> None:
    questions = load(str(shared_data / "selfaware.json"))
    assert questions == load(str(shared_data / "selfaware.json"), format="selfaware")
    assert [sum(question.kind == kind for question in questions) for kind in ("answerable", "unanswerable")] == [2337, 1032]
    assert all(bool(question.answers) == question.metadata["answerable"] for question in questions)
    assert (questions[0].id, questions[0].answers, questions[0].metadata["source"]) == ("1", ("song",), "hotpot_train")


def write(path: Path, *items: object) -> str:
    path.write_text(json.dumps({"dataset_name": "SelfAware", "example": items}), encoding="utf-8")
    return str(path)


def test_both_kinds(tmp_path: Path) -> None:
    one, other = load(write(tmp_path / "s.json", ITEM, OPEN))
    assert (one.id, one.kind, one.answers, one.metadata) == (
        "7",
        "answerable",
        ("Ann",),
        {"answerable": True, "source": "squad"},
    )
    assert (other.kind, other.answers, other.metadata) == ("unanswerable", (), {"answerable": False})


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"answerable": "yes"}, "answerable = 'yes', expected true or false"),
        ({"answer": []}, "an answerable question without an answer"),
        ({"answerable": False}, "answerable = False with answer"),
    ],
)
def test_contradictions(tmp_path: Path, changed: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=f"item 2: got {complaint}"):
        load(write(tmp_path / "s.json", OPEN, ITEM | changed))

"""HotpotQA's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests import made_data as made


def test_lines_with_passages(made_data: Path) -> None:
    questions = load(str(made_data / "hotpotqa.jsonl"))
    assert len(questions) == len(load(str(made_data / "2wikimultihopqa.jsonl"))) == made.QUESTIONS
    assert (questions[0].id, questions[0].answers) == ("h200", ("yes",))
    assert questions[1].answers == (made.town(201),)
    assert (questions[0].kind, questions[0].metadata["level"]) == ("bridge", "hard")
    assert questions[1].metadata["supporting"] == ("River 201", "Springs")


def test_the_real_lines(shared_data: Path) -> None:
    questions = load(str(shared_data / "hotpotqa.jsonl"))
    assert len(questions) == 500
    assert questions[0].id == "5ac07327554299012d1db5f2"
    assert questions[0].answers == ("an American football quarterback",)
    assert questions[0].kind == "bridge"
    assert questions[0].metadata["level"] == "hard"
    assert all(len(question.metadata["supporting"]) == 2 for question in questions)
    others = load(str(shared_data / "2wikimultihopqa.jsonl"))
    assert len(others) == 500
    assert [sum(one.answers[0] in ("yes", "no") for one in both) for both in (questions, others)] == [25, 44]


def test_the_official_file(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    item: dict[str, object] = {
        "_id": "a",
        "question": "Who?",
        "answer": "Ann",
        "type": "comparison",
        "level": "easy",
        "supporting_facts": [["T", 0], ["T", 1], ["U", 0]],
        "context": [["T", ["One.", "Two."]], ["U", ["Three."]]],
    }
    path.write_text(json.dumps([item]), encoding="utf-8")
    (question,) = load(str(path))
    assert (question.id, question.kind, question.answers) == ("a", "comparison", ("Ann",))
    assert question.metadata == {"supporting": ("T", "U"), "level": "easy"}
    item["supporting_facts"] = {"title": ["T", "T", "U"], "sent_id": [0, 1, 0]}  # as on the hub
    path.write_text(json.dumps([item]), encoding="utf-8")
    assert load(str(path)) == [question]


def test_passages_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text('{"question": "Who?", "answer": "x", "passages": ["text"]}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 1: got passages of another shape"):
        load(str(path), format="hotpotqa")

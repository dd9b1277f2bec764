"""IIRC's official files: a passage in their keys, for none is among the shared data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput


def asked(qid: str, **answer: Any) -> dict[str, Any]:
    return {"qid": qid, "question": f"Question {qid}?", "answer": answer, "context": [], "question_links": ["town"]}


QUESTIONS = [
    asked("q_1", type="span", answer_spans=[{"text": "the sea ", "passage": "town", "start": 1, "end": 4}, {"text": "a bay"}]),
    asked("q_2", type="value", answer_value="53", answer_unit="years"),
    asked("q_3", type="binary", answer_value="no"),
    asked("q_4", type="none"),
    asked("q_5", type="bad"),
]


def written(path: Path, questions: Any) -> str:
    path.write_text(json.dumps([{"pid": "p_0", "title": "A ship", "text": "...", "links": [], "questions": questions}]))
    return str(path)


def test_each_kind_of_answer(tmp_path: Path) -> None:
    found = load(written(tmp_path / "dev.json", QUESTIONS))
    assert [(one.id, one.kind, one.answers) for one in found] == [
        ("q_1", "span", ("the sea", "a bay")),
        ("q_2", "value", ("53",)),
        ("q_3", "binary", ("no",)),
        ("q_4", "none", ()),
    ]
    assert [one.metadata["answerable"] for one in found] == [True, True, True, False]
    assert found[0].metadata["title"] == "A ship"


@pytest.mark.parametrize(
    ("questions", "complaint"),
    [
        ([{"question": "?"}], "got questions of another shape"),
        ([asked("q", type="date")], "expected span, binary, value or none"),
        ([asked("q", type="span", answer_spans=["text"])], "expected a list of spans"),
        ([asked("q", type="value")], "expected a key 'answer_value'"),
    ],
)
def test_other_shapes(tmp_path: Path, questions: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        load(written(tmp_path / "dev.json", questions))

"""2WikiMultiHopQA's official files: an item in their keys, for none is among the shared data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput

ITEM = {
    "_id": "a",
    "type": "compositional",
    "question": "Where was the director of Film T born?",
    "context": [["Film T", ["One.", "Two."]], ["Ann", ["Three."]]],
    "supporting_facts": [["Film T", 0], ["Ann", 0]],
    "evidences": [["Film T", "director", "Ann"], ["Ann", "place of birth", "Paris"]],
    "answer": "Paris",
    "evidences_id": [["Q1", "director", "Q2"], ["Q2", "place of birth", "Q3"]],
    "answer_id": "Q3",
}


def test_the_official_file(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM]), encoding="utf-8")
    (question,) = load(str(path))
    assert (question.id, question.kind, question.answers) == ("a", "compositional", ("Paris",))
    assert question.metadata == {
        "supporting": ("Film T", "Ann"),
        "evidences": (("Film T", "director", "Ann"), ("Ann", "place of birth", "Paris")),
    }
    assert load(str(path), format="2wikimultihopqa") == [question]


@pytest.mark.parametrize("evidences", ["Ann", [["Ann", "born"]], [3]])
def test_evidences_of_another_shape(tmp_path: Path, evidences: object) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM | {"evidences": evidences}]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"item 1: got evidences = .*expected a list of \[subject, relation, object\]"):
        load(str(path))


def test_names_of_the_answer_count_where_the_scorers_file_lies_beside(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    other = ITEM | {"_id": "b", "answer": "yes", "answer_id": None}
    path.write_text(json.dumps([ITEM, other]), encoding="utf-8")
    names = tmp_path / "id_aliases.json"
    lines = [
        {"Q_id": "Q3", "aliases": ["Lutetia", "Paris"], "demonyms": ["Parisian"]},
        {"Q_id": "Q9", "aliases": ["X"], "demonyms": []},
    ]
    names.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert [question.answers for question in load(str(path))] == [("Paris", "Lutetia", "Parisian"), ("yes",)]
    names.write_text('{"aliases": []}', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"id_aliases.json, line 1: got the keys 'aliases', expected a key 'Q_id'"):
        load(str(path))

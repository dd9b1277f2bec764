"""HotpotQA and its kin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests import made_data as made

# HotpotQA's files.


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


def test_the_official_file_of_hotpotqa(tmp_path: Path) -> None:
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


# 2WikiMultiHopQA's official files: an item in their keys, for none is among the shared data.

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


def test_the_official_file_of_two_wiki(tmp_path: Path) -> None:
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


# IIRC's official files: a passage in their keys, for none is among the shared data.


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


# StrategyQA's official files.


def test_the_official_form(made_data: Path) -> None:
    questions = load(str(made_data / "strategyqa.dev.json"))
    assert questions == load(str(made_data / "strategyqa.dev.json"), format="strategyqa")
    assert (len(questions), questions[0].id, questions[0].kind) == (made.QUESTIONS, "s100", "yes_no")
    assert [question.answers[0] for question in questions[:3]] == ["no", "no", "yes"]
    assert questions[0].metadata["term"] == "River 100"
    assert questions[0].metadata["decomposition"][1] == "Is #1 more than 10 km?"
    assert len(questions[0].metadata["facts"]) == 2
    assert questions[0].metadata["supporting"] == ("River 100", "River 7")


def test_the_official_files(shared_data: Path) -> None:
    train = load(str(shared_data / "strategyqa.train.json"))
    dev = load(str(shared_data / "strategyqa.dev.json"), format="strategyqa")
    assert (len(train), len(dev)) == (2061, 229)
    assert not {question.id for question in train} & {question.id for question in dev}
    first = train[0]
    assert (first.id, first.answers, first.kind) == ("2bc9c4f9c19c167187f2", ("yes",), "yes_no")
    assert first.text == "Are more people today related to Genghis Khan than Julius Caesar?"
    assert first.metadata["term"] == "Genghis Khan"
    assert first.metadata["decomposition"][2] == "Is #2 greater than #1?"
    assert len(first.metadata["facts"]) == 3
    assert first.metadata["supporting"][:2] == ("Caesarion", "Julia (daughter of Caesar)")
    assert all(question.answers[0] in ("yes", "no") for question in train + dev)
    assert all(question.metadata["decomposition"] for question in train + dev)


ITEM_OF_STRATEGYQA = {
    "qid": "a",
    "term": "T",
    "question": "Is it?",
    "answer": False,
    "facts": ["F."],
    "decomposition": ["Is #1?"],
}


def test_without_evidence(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM_OF_STRATEGYQA]), encoding="utf-8")
    (question,) = load(str(path))
    assert (question.kind, question.answers) == ("yes_no", ("no",))
    assert question.metadata == {"term": "T", "facts": ("F.",), "decomposition": ("Is #1?",), "supporting": ()}


def test_a_decomposition_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM_OF_STRATEGYQA | {"decomposition": "Is #1?"}]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"item 1: got decomposition = 'Is #1\?', expected a list of text"):
        load(str(path))

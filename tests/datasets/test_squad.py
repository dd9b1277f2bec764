"""SQuAD's official form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests import made_data as made

ASKED: dict[str, Any] = {"id": "a", "question": "How many?", "answers": [{"text": "308", "answer_start": 3}, {"text": "308"}]}


def write(path: Path, *asked: dict[str, Any]) -> str:
    articles = [{"title": "Bowl", "paragraphs": [{"context": "There are 308.", "qas": [one]}]} for one in asked]
    path.write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return str(path)


def test_several_articles_of_several_paragraphs(made_data: Path) -> None:
    questions = load(str(made_data / "xquad.en.json"))
    assert [question.answers for question in questions] == [(made.town(number),) for number in range(100, 100 + made.QUESTIONS)]
    assert [question.metadata["title"] for question in questions[4:6]] == ["Rivers_from_100", "Rivers_from_105"]


def test_the_file_at_hand(shared_data: Path) -> None:
    questions = load(str(shared_data / "xquad.en.json"))
    assert len(questions) == 1190
    assert all(question.answers for question in questions)
    assert questions[0].answers == ("308",)
    assert questions[0].metadata == {"title": "Super_Bowl_50"}


def test_answers_once_and_what_cannot_be_answered(tmp_path: Path) -> None:
    impossible = {"id": "b", "question": "Why?", "answers": [], "is_impossible": True}
    one, other = load(write(tmp_path / "s.json", ASKED, impossible))
    assert (one.text, one.answers, one.metadata) == ("How many?", ("308",), {"title": "Bowl"})
    assert (other.answers, other.metadata["answerable"]) == ((), False)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"answers": "308"}, "a list of answers"),
        ({"question": " "}, "text that is not empty"),
        ({"id": ["x"]}, "text or a whole"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=f"item 2, question 1: got .*, expected {complaint}"):
        load(write(tmp_path / "s.json", ASKED | {"id": "z"}, ASKED | changed))


def test_the_same_id_twice(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="item 2, question 1: got the id 'a' again"):
        load(write(tmp_path / "s.json", ASKED, ASKED))


def test_another_shape(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"data": [{"paragraphs": [1]}]}), encoding="utf-8")
    with pytest.raises(InvalidInput, match="paragraphs of another shape"):
        load(str(tmp_path / "s.json"), format="squad")

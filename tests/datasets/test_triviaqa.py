"""TriviaQA's official files: an item in their keys, for none is among the shared data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput

ITEM: dict[str, Any] = {
    "Answer": {
        "Aliases": ["Saint-Malo", "St-Malo"],
        "MatchedWikiEntityName": "",
        "NormalizedAliases": ["saint malo", "st malo"],
        "NormalizedMatchedWikiEntityName": "",
        "NormalizedValue": "saint malo",
        "Type": "WikipediaEntity",
        "Value": "Saint-Malo",
    },
    "EntityPages": [{"DocSource": "Search", "Filename": "Saint-Malo.txt", "Title": "Saint-Malo"}],
    "Question": "Which walled port did the corsairs sail from?",
    "QuestionId": "qx_1",
    "QuestionSource": "http://quiz.example/",
    "SearchResults": [],
}


def write(path: Path, item: object, indent: int | None = 4) -> str:
    document = {"Data": [item], "Domain": "Web", "Split": "dev", "VerifiedEval": False, "Version": 1.0}
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("indent", [4, None])
def test_the_official_file(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path / "web-dev.json", ITEM, indent)
    (question,) = load(path)
    assert (question.id, question.text) == ("qx_1", "Which walled port did the corsairs sail from?")
    assert question.answers == ("Saint-Malo", "St-Malo", "saint malo", "st malo")
    assert question.metadata == {"source": "http://quiz.example/"}
    assert load(path, format="triviaqa") == [question]


def test_the_items_alone(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(ITEM) + "\n", encoding="utf-8")
    assert load(str(path))[0].id == "qx_1"


def test_without_answers(tmp_path: Path) -> None:
    (question,) = load(write(tmp_path / "test.json", {key: ITEM[key] for key in ("Question", "QuestionId")}))
    assert (question.answers, question.metadata) == ((), {})


@pytest.mark.parametrize("answer", ["Saint-Malo", {"Aliases": []}, {"Value": "", "Aliases": []}, {"Value": {}}])
def test_answers_of_another_shape(tmp_path: Path, answer: object) -> None:
    with pytest.raises(InvalidInput, match=r"item 1: got .*Value"):
        load(write(tmp_path / "dev.json", ITEM | {"Answer": answer}))

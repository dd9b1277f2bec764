"""StrategyQA's official files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests import made_data as made


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


ITEM = {"qid": "a", "term": "T", "question": "Is it?", "answer": False, "facts": ["F."], "decomposition": ["Is #1?"]}


def test_without_evidence(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM]), encoding="utf-8")
    (question,) = load(str(path))
    assert (question.kind, question.answers) == ("yes_no", ("no",))
    assert question.metadata == {"term": "T", "facts": ("F.",), "decomposition": ("Is #1?",), "supporting": ()}


def test_a_decomposition_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ITEM | {"decomposition": "Is #1?"}]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"item 1: got decomposition = 'Is #1\?', expected a list of text"):
        load(str(path))

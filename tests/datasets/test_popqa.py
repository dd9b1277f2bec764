"""PopQA's official table, and the same keys as JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests import made_data as made

ITEM: dict[str, Any] = {
    "id": 7,
    "prop": "place of birth",
    "question": "Where?",
    "possible_answers": '["Rome", "Roma"]',
    "s_pop": 12,
}


def test_a_file_with_passages(made_data: Path) -> None:
    questions = load(str(made_data / "popqa.json"))
    assert len(questions) == made.ENTITIES
    assert (questions[1].id, questions[1].kind, questions[1].answers) == ("1", "occupation", ("potter", "master potter"))
    assert questions[1].metadata == {"popularity": 101}


def test_the_file_at_hand(shared_data: Path) -> None:
    questions = load(str(shared_data / "popqa.json"))
    assert len(questions) == 1000
    assert all(question.answers for question in questions)
    assert questions[0].answers[0] == "politician"
    assert questions[0].metadata == {"popularity": 142}


def test_the_table_and_json_say_the_same(tmp_path: Path) -> None:
    table, lines = tmp_path / "popQA.tsv", tmp_path / "popqa.jsonl"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ITEM), delimiter="\t")
        writer.writeheader()
        writer.writerow(ITEM)
    lines.write_text(json.dumps(ITEM), encoding="utf-8")
    (one,) = load(str(table))
    assert [one] == load(str(lines))
    assert (one.id, one.kind, one.answers, one.metadata) == ("7", "place_of_birth", ("Rome", "Roma"), {"popularity": 12})


@pytest.mark.parametrize("changed", [{"possible_answers": "[Rome"}, {"s_pop": "many"}, {"possible_answers": "[[1]]"}])
def test_what_is_broken_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps(ITEM | changed), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line 1: got .*, expected "):
        load(str(tmp_path / "p.jsonl"))

"""TruthfulQA's official table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from gnothi.types import Question
from tests import made_data as made

ROW = {
    "Type": "Non-Adversarial",
    "Category": "Bread",
    "Question": "What, if anything, does toast feel?",
    "Best Answer": "Nothing",
    "Correct Answers": "Nothing;  Toast feels nothing ; ",
    "Incorrect Answers": "Pain; Joy",
    "Source": "",
}


def write(path: Path, row: dict[str, str]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return str(path)


def every_row_comes_back(path: str) -> list[Question]:
    questions = load(path)
    assert questions == load(path, format="truthfulqa")
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, (question, row) in enumerate(zip(questions, rows, strict=True), start=1):
        assert (question.id, question.text, question.answers[0]) == (
            str(number),
            row["Question"].strip(),
            row["Best Answer"].strip(),
        )
        for answers, column in (
            (question.answers, "Correct Answers"),
            (question.metadata["incorrect_answers"], "Incorrect Answers"),
        ):
            assert set(" ".join(answers).split()) <= set(row[column].replace(";", " ").split()) | set(
                row["Best Answer"].split()
            )
    return questions


def test_every_row_comes_back(made_data: Path) -> None:
    questions = every_row_comes_back(str(made_data / "truthfulqa.csv"))
    assert len(questions) == made.QUESTIONS
    assert [question.kind for question in questions[:2]] == ["non_adversarial", "adversarial"]
    assert len({question.metadata["category"] for question in questions}) == 5


def test_the_official_table(shared_data: Path) -> None:
    questions = every_row_comes_back(str(shared_data / "truthfulqa.csv"))
    assert len(questions) == 817
    assert [sum(q.kind == kind for q in questions) for kind in ("adversarial", "non_adversarial")] == [437, 380]
    assert len({question.metadata["category"] for question in questions}) == 38
    both = [question.id for question in questions if {*question.answers} & {*question.metadata["incorrect_answers"]}]
    assert both == ["348", "355"]  # "Unknown" stands in both columns there


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_row(tmp_path: Path, name: str) -> None:
    (question,) = load(write(tmp_path / name, ROW), format="truthfulqa")
    assert (question.text, question.kind) == ("What, if anything, does toast feel?", "non_adversarial")
    assert question.answers == ("Nothing", "Toast feels nothing")
    assert question.metadata == {"category": "Bread", "incorrect_answers": ("Pain", "Joy")}


@pytest.mark.parametrize("empty", ["Question", "Best Answer", "Correct Answers", "Incorrect Answers"])
def test_what_may_not_be_empty(tmp_path: Path, empty: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 2: got {empty} = '', expected text that is not empty"):
        load(write(tmp_path / "t.csv", ROW | {empty: ""}))


def test_nothing_between_semicolons(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Incorrect Answers = ' ; ', expected answers with semicolons"):
        load(write(tmp_path / "t.csv", ROW | {"Incorrect Answers": " ; "}))


def test_another_format_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"question": "Who?", "answer": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 1: got the keys 'question, answer', expected a key 'Best Answer'"):
        load(str(path), format="truthfulqa")

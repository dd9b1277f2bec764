"""Open-domain questions in the official files."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from gnothi.types import Question
from tests import made_data as made

# DPR's files of questions, as Python's csv module writes them, and packed ones.

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12).filter(str.strip)


@given(st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=3)), min_size=1, max_size=4))
def test_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]) -> None:
    path = tmp_path_factory.getbasetemp() / "any-test.qa.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows((text, str(answers)) for text, answers in rows)
    found = load(str(path))
    assert [one.text for one in found] == [text.strip() for text, _ in rows]
    assert [one.answers for one in found] == [tuple(dict.fromkeys(map(str.strip, answers))) for _, answers in rows]
    assert [one.id for one in found] == [str(number) for number in range(1, len(rows) + 1)]


def test_a_packed_file_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "trivia-test.qa.csv.gz"
    path.write_bytes(gzip.compress(b"Who?\t['Ann \"A.\" Lee', 'Ann']\n"))
    (question,) = load(str(path))
    assert (question.text, question.answers, question.kind) == ("Who?", ('Ann "A." Lee', "Ann"), "one_hop")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("Who?\tAnn", "expected a list as Python writes it"), ("Who?", "got 1 fields, expected 2"), ("Who?\t[{}]", "got answers")],
)
def test_lines_of_another_shape(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"line 1: .*{complaint}"):
        load(str(path), format="dpr")


# NQ-open's official lines.


def test_the_official_form(made_data: Path) -> None:
    questions = load(str(made_data / "nq_open.dev.jsonl"))
    assert len(questions) == made.QUESTIONS
    assert questions == load(str(made_data / "nq_open.dev.jsonl"), format="nq_open")
    assert questions[3].text == "where does river 3 spring"
    assert (questions[3].id, questions[3].kind) == ("4", "one_hop")
    assert questions[3].answers == (made.town(3), f"near {made.town(3)}")
    assert all(question.answers for question in questions)


def test_the_official_file(shared_data: Path) -> None:
    questions = load(str(shared_data / "nq_open.dev.jsonl"))
    assert len(questions) == 3610
    assert questions == load(str(shared_data / "nq_open.dev.jsonl"), format="nq_open")
    assert questions[0].text == "when was the last time anyone was on the moon"
    assert (questions[0].id, questions[0].kind) == ("1", "one_hop")
    assert questions[0].answers == ("14 December 1972 UTC", "December 1972")
    assert all(question.answers for question in questions)


def test_lines_with_more_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "who?", "answer": ["Ann"], "kind": "x"}\n', encoding="utf-8")
    assert load(str(path))[0].kind == "x"


# PopQA's official table, and the same keys as JSON.

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


# SelfAware's official file.

ITEM_OF_SELFAWARE: dict[str, Any] = {
    "question_id": 7,
    "question": "Who?",
    "answer": ["Ann"],
    "answerable": True,
    "source": "squad",
}
OPEN: dict[str, Any] = {"question_id": 8, "question": "Why is there something?", "answer": None, "answerable": False}


def test_the_official_form_of_selfaware(made_data: Path) -> None:
    questions = load(str(made_data / "selfaware.json"))
    assert questions == load(str(made_data / "selfaware.json"), format="selfaware")
    assert [question.kind for question in questions] == ["answerable"] * 20 + ["unanswerable"] * 5
    assert all(bool(question.answers) == question.metadata["answerable"] for question in questions)


def test_the_official_file_of_selfaware(shared_data: Path) -> None:
    questions = load(str(shared_data / "selfaware.json"))
    assert questions == load(str(shared_data / "selfaware.json"), format="selfaware")
    assert [sum(question.kind == kind for question in questions) for kind in ("answerable", "unanswerable")] == [2337, 1032]
    assert all(bool(question.answers) == question.metadata["answerable"] for question in questions)
    assert (questions[0].id, questions[0].answers, questions[0].metadata["source"]) == ("1", ("song",), "hotpot_train")


def write(path: Path, *items: object) -> str:
    path.write_text(json.dumps({"dataset_name": "SelfAware", "example": items}), encoding="utf-8")
    return str(path)


def test_both_kinds(tmp_path: Path) -> None:
    one, other = load(write(tmp_path / "s.json", ITEM_OF_SELFAWARE, OPEN))
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
        load(write(tmp_path / "s.json", OPEN, ITEM_OF_SELFAWARE | changed))


# SQuAD's official form.

ASKED: dict[str, Any] = {"id": "a", "question": "How many?", "answers": [{"text": "308", "answer_start": 3}, {"text": "308"}]}


def write_of_squad(path: Path, *asked: dict[str, Any]) -> str:
    articles = [{"title": "Bowl", "paragraphs": [{"context": "There are 308.", "qas": [one]}]} for one in asked]
    path.write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return str(path)


def test_several_articles_of_several_paragraphs(made_data: Path) -> None:
    questions = load(str(made_data / "xquad.en.json"))
    assert [question.answers for question in questions] == [(made.town(number),) for number in range(100, 100 + made.QUESTIONS)]
    assert [question.metadata["title"] for question in questions[4:6]] == ["Rivers_from_100", "Rivers_from_105"]


def test_the_file_at_hand_of_squad(shared_data: Path) -> None:
    questions = load(str(shared_data / "xquad.en.json"))
    assert len(questions) == 1190
    assert all(question.answers for question in questions)
    assert questions[0].answers == ("308",)
    assert questions[0].metadata == {"title": "Super_Bowl_50"}


def test_answers_once_and_what_cannot_be_answered(tmp_path: Path) -> None:
    impossible = {"id": "b", "question": "Why?", "answers": [], "is_impossible": True}
    one, other = load(write_of_squad(tmp_path / "s.json", ASKED, impossible))
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
def test_what_is_broken_is_named_of_squad(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=f"item 2, question 1: got .*, expected {complaint}"):
        load(write_of_squad(tmp_path / "s.json", ASKED | {"id": "z"}, ASKED | changed))


def test_the_same_id_twice(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="item 2, question 1: got the id 'a' again"):
        load(write_of_squad(tmp_path / "s.json", ASKED, ASKED))


def test_another_shape(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"data": [{"paragraphs": [1]}]}), encoding="utf-8")
    with pytest.raises(InvalidInput, match="paragraphs of another shape"):
        load(str(tmp_path / "s.json"), format="squad")


# TriviaQA's official files: an item in their keys, for none is among the shared data.

ITEM_OF_TRIVIAQA: dict[str, Any] = {
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


def write_of_triviaqa(path: Path, item: object, indent: int | None = 4) -> str:
    document = {"Data": [item], "Domain": "Web", "Split": "dev", "VerifiedEval": False, "Version": 1.0}
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("indent", [4, None])
def test_the_official_file_of_triviaqa(tmp_path: Path, indent: int | None) -> None:
    path = write_of_triviaqa(tmp_path / "web-dev.json", ITEM_OF_TRIVIAQA, indent)
    (question,) = load(path)
    assert (question.id, question.text) == ("qx_1", "Which walled port did the corsairs sail from?")
    assert question.answers == ("Saint-Malo", "St-Malo", "saint malo", "st malo")
    assert question.metadata == {"source": "http://quiz.example/"}
    assert load(path, format="triviaqa") == [question]


def test_the_items_alone(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(ITEM_OF_TRIVIAQA) + "\n", encoding="utf-8")
    assert load(str(path))[0].id == "qx_1"


def test_without_answers(tmp_path: Path) -> None:
    (question,) = load(
        write_of_triviaqa(tmp_path / "test.json", {key: ITEM_OF_TRIVIAQA[key] for key in ("Question", "QuestionId")})
    )
    assert (question.answers, question.metadata) == ((), {})


@pytest.mark.parametrize("answer", ["Saint-Malo", {"Aliases": []}, {"Value": "", "Aliases": []}, {"Value": {}}])
def test_answers_of_another_shape(tmp_path: Path, answer: object) -> None:
    with pytest.raises(InvalidInput, match=r"item 1: got .*Value"):
        load(write_of_triviaqa(tmp_path / "dev.json", ITEM_OF_TRIVIAQA | {"Answer": answer}))


# TruthfulQA's official table.

ROW = {
    "Type": "Non-Adversarial",
    "Category": "Bread",
    "Question": "What, if anything, does toast feel?",
    "Best Answer": "Nothing",
    "Correct Answers": "Nothing;  Toast feels nothing ; ",
    "Incorrect Answers": "Pain; Joy",
    "Source": "",
}


def write_of_truthfulqa(path: Path, row: dict[str, str]) -> str:
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
    (question,) = load(write_of_truthfulqa(tmp_path / name, ROW), format="truthfulqa")
    assert (question.text, question.kind) == ("What, if anything, does toast feel?", "non_adversarial")
    assert question.answers == ("Nothing", "Toast feels nothing")
    assert question.metadata == {"category": "Bread", "incorrect_answers": ("Pain", "Joy")}


@pytest.mark.parametrize("empty", ["Question", "Best Answer", "Correct Answers", "Incorrect Answers"])
def test_what_may_not_be_empty(tmp_path: Path, empty: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 2: got {empty} = '', expected text that is not empty"):
        load(write_of_truthfulqa(tmp_path / "t.csv", ROW | {empty: ""}))


def test_nothing_between_semicolons(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Incorrect Answers = ' ; ', expected answers with semicolons"):
        load(write_of_truthfulqa(tmp_path / "t.csv", ROW | {"Incorrect Answers": " ; "}))


def test_another_format_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"question": "Who?", "answer": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 1: got the keys 'question, answer', expected a key 'Best Answer'"):
        load(str(path), format="truthfulqa")

"""Multiple choice in its three shapes, the official files that use them, and CommonsenseQA's in-house split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import Record, data_sets, load
from gnothi.datasets.formats import choice
from gnothi.errors import InvalidInput
from gnothi.methods.steps.parsing import as_choice, read_reply
from tests import made_data as made
from tests.cases import each

# Multiple choice in its three shapes, and the official files that use them.

TEXTS = st.text(min_size=1, max_size=10).map(lambda text: " ".join(text.split())).filter(bool)
LISTED = [{"label": "A", "text": "hay"}, {"label": "B", "text": "milk"}]
COLUMNS = {"label": ["A", "B"], "text": ["hay", "milk"]}
STEM = {"stem": "What do cows eat?", "choices": LISTED}


@given(st.dictionaries(TEXTS, TEXTS, min_size=2, max_size=6), st.data())
def test_the_three_shapes_say_the_same(options: dict[str, str], data: st.DataObject) -> None:
    label = data.draw(st.sampled_from(sorted(options)))
    record = Record({"key": label}, "f, line 1", 1)
    shapes: list[Any] = [
        [{"label": label, "text": text} for label, text in options.items()],
        {"label": list(options), "text": list(options.values())},
        options,
    ]
    if {"label", "text"} & options.keys():
        del shapes[2]
    for shape in shapes:
        found = choice.read(record, shape, "choices")
        assert (found.labels, found.texts) == (tuple(options), tuple(options.values()))
        assert found.right(record, "key") == (options[label],)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "A",
        [],
        ["hay"],
        ["hay", 1],
        {},
        {"A": "hay"},
        {"A": 1, "B": 2},
        COLUMNS | {"text": ["hay"]},
        [LISTED[0], LISTED[0]],
    ],
)
def test_other_shapes(given: object) -> None:
    with pytest.raises(InvalidInput, match="f, line 1: got choices"):
        choice.read(Record({}, "f, line 1", 1), given, "choices")


def load_one(path: Path, item: dict[str, Any], format: str | None = None) -> Any:
    path.write_text(json.dumps(item) + "\n", encoding="utf-8")
    (question,) = load(str(path), format=format)
    return question


OPENBOOKQA: dict[str, Any] = {"id": "7-1", "question": STEM, "answerKey": "A"}
COMMONSENSEQA: dict[str, Any] = {
    "id": "c1",
    "question": "What do cows eat?",
    "question_concept": "cow",
    "choices": COLUMNS,
    "answerKey": "A",
}
MEDQA: dict[str, Any] = {
    "question": "What do cows eat?",
    "answer": "hay",
    "options": {"A": "hay", "B": "milk"},
    "answer_idx": "A",
    "meta_info": "step1",
}


@pytest.mark.parametrize(
    ("item", "format", "metadata"),
    [
        (OPENBOOKQA, "openbookqa", {}),
        (OPENBOOKQA | {"fact1": "cows graze", "humanScore": "1.00"}, "openbookqa", {"fact": "cows graze"}),
        ({"id": "7-1", "question_stem": STEM["stem"], "choices": COLUMNS, "answerKey": "A"}, "openbookqa", {}),
        (COMMONSENSEQA, "commonsenseqa", {"concept": "cow"}),
        ({"id": "c1", "question": STEM | {"question_concept": "cow"}, "answerKey": "A"}, "commonsenseqa", {"concept": "cow"}),
        (MEDQA, "medqa", {"exam": "step1"}),
        ({key: MEDQA[key] for key in ("question", "answer", "options")}, "medqa", {}),
        ({"question": "What do cows eat?", "choices": ["hay", "milk"], "answer": "A", "type": "choice"}, "jsonl", {}),
    ],
)
def test_each_form_of_a_line(tmp_path: Path, item: dict[str, Any], format: str, metadata: dict[str, str]) -> None:
    question = load_one(tmp_path / "q.jsonl", item)
    assert question == load_one(tmp_path / "q.jsonl", item, format)
    assert (question.text, question.choices, question.answers) == ("What do cows eat?", ("hay", "milk"), ("hay",))
    assert (question.kind, question.metadata) == ("choice", metadata)


@pytest.mark.parametrize("item", [OPENBOOKQA, COMMONSENSEQA])
def test_the_key_kept_back_and_a_wrong_one(tmp_path: Path, item: dict[str, Any]) -> None:
    assert load_one(tmp_path / "q.jsonl", {key: value for key, value in item.items() if key != "answerKey"}).answers == ()
    with pytest.raises(InvalidInput, match="line 1: got answerKey = 'E', expected the label of a choice: A, B"):
        load_one(tmp_path / "q.jsonl", item | {"answerKey": "E"})


def test_medqas_letter_and_text_must_agree(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="answer = 'milk' with answer_idx = 'A', expected the option of that letter: 'hay'"):
        load_one(tmp_path / "q.jsonl", MEDQA | {"answer": "milk"})
    with pytest.raises(InvalidInput, match="answer = 'moss', expected one of the options"):
        load_one(tmp_path / "q.jsonl", {"question": "Q?", "answer": "moss", "options": MEDQA["options"]})


@pytest.mark.parametrize("question", ["What?", {"stem": ""}, {"choices": LISTED}])
def test_a_stem_of_another_shape(tmp_path: Path, question: object) -> None:
    with pytest.raises(InvalidInput, match=r'line 1: got question = .*expected an object with "stem"'):
        load_one(tmp_path / "q.jsonl", OPENBOOKQA | {"question": question}, "openbookqa")


FILES = [
    ("commonsenseqa.dev.jsonl", "commonsenseqa", 1221, 5),
    ("openbookqa.test.jsonl", "openbookqa", 500, 4),
    ("medqa.test.jsonl", "medqa", 1273, 4),
]


def official_file_read(path: str, format: str, count: int, offered: int) -> None:
    questions = load(path)
    assert len(questions) == count
    assert questions == load(path, format=format)
    assert all(len(question.choices) == offered and len(question.answers) == 1 for question in questions)
    lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for question, line in zip(questions, lines, strict=True):
        position = "ABCDE".index(line.get("answerKey") or line["answer_idx"])
        assert question.answers[0] == question.choices[position]


@pytest.mark.parametrize(("name", "format", "offered"), [(name, format, offered) for name, format, _, offered in FILES])
def test_the_official_forms(made_data: Path, name: str, format: str, offered: int) -> None:
    official_file_read(str(made_data / name), format, made.QUESTIONS, offered)
    questions = load(str(made_data / name))
    assert [question.answers[0] for question in questions] == [made.chosen(number)[1] for number in range(made.QUESTIONS)]


def test_the_official_files(shared_data: Path) -> None:
    each(official_file_read, [(str(shared_data / name), format, count, offered) for name, format, count, offered in FILES])


def lost_as_a_reply(data: Path) -> list[str]:
    return [
        name
        for name, *_ in FILES
        for question in load(str(data / name))
        for choice in question.choices
        if as_choice(read_reply(choice).answer, question.choices) != choice
    ]


def test_choices_survive_being_written_as_a_reply(made_data: Path) -> None:
    assert lost_as_a_reply(made_data) == []


def test_choices_of_the_official_files_survive_being_written_as_a_reply(shared_data: Path) -> None:
    """All but two of MedQA, which begin with the same sentence, of which a short answer keeps no more."""
    assert lost_as_a_reply(shared_data) == ["medqa.test.jsonl"] * 2


def line(name: str) -> str:
    choices = [{"label": "A", "text": "bank"}, {"label": "B", "text": "mall"}]
    question = {"stem": f"Where is {name}?", "question_concept": name, "choices": choices}
    return json.dumps({"id": name, "answerKey": "B", "question": question})


def test_the_list_divides_the_training_file(tmp_path: Path) -> None:
    path = tmp_path / "train_rand_split.jsonl"
    path.write_text("\n".join(map(line, "abcd")), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"there is no .*inhouse_split_qids\.txt: expected the ids"):
        load(f"csqa-inhouse:test:{path}")
    (tmp_path / "inhouse_split_qids.txt").write_text("c\na\n", encoding="utf-8")
    assert [one.id for one in load(f"csqa-inhouse:train:{path}")] == ["a", "c"]
    assert [one.id for one in load(f"csqa-inhouse:test:{path}")] == ["b", "d"]
    assert [one.id for one in load(f"csqa-inhouse:test:{path}", limit=1)] == ["b"]


@pytest.mark.parametrize("argument", ["csqa-inhouse", "csqa-inhouse:dev:x", "csqa-inhouse:test"])
def test_a_part_and_a_file_are_named(argument: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected csqa-inhouse:train:FILE or csqa-inhouse:test:FILE"):
        load(argument)
    assert "csqa-inhouse" in data_sets()

"""Question files as they come from elsewhere: hubs, spreadsheets, other benchmarks. All content is invented."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.datasets.registry import load_unanswered
from gnothi.errors import InvalidInput
from gnothi.types import Question
from tests.messages import refused

ASKED = "Who kept the lighthouse?"


def one(path: Path, record: object) -> Question:
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (question,) = load(str(path))
    assert question.text == ASKED
    return question


def cell(tmp_path: Path, answer: str, head: str = "answers") -> tuple[str, ...]:
    out = io.StringIO()
    csv.writer(out).writerows([["question", head], [ASKED, answer]])
    (tmp_path / "q.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    (question,) = load(str(tmp_path / "q.csv"))
    return question.answers


NUMBERED = {"choices": ["Ann", "Dana Brisk"], "question": ASKED}
SHAPES: dict[str, Any] = {
    "SQuAD, hub": {
        "id": "5",
        "title": "O",
        "context": "c",
        "question": ASKED,
        "answers": {"text": ["Dana Brisk", "Brisk"], "answer_start": [0, 5]},
    },
    "TriviaQA, hub": {
        "question": ASKED,
        "question_id": "t",
        "entity_pages": {},
        "answer": {"aliases": ["Brisk"], "normalized_aliases": ["brisk"], "value": "Dana Brisk"},
    },
    "KILT": {
        "id": "k",
        "input": ASKED,
        "output": [
            {"answer": "Dana Brisk", "provenance": [{"title": "Orvel"}]},
            {"answer": "Brisk"},
            {"provenance": [{"title": "Tarn"}]},
        ],
    },
    "FlashRAG": {"id": "test_0", "question": ASKED, "golden_answers": ["Dana Brisk", "Brisk"], "metadata": None},
    "MuSiQue": {
        "id": "2hop__1_2",
        "question": ASKED,
        "answer": "Dana Brisk",
        "answer_aliases": ["Brisk"],
        "answerable": True,
        "question_decomposition": [],
        "paragraphs": [
            {"idx": 0, "title": "Orvel", "paragraph_text": "t", "is_supporting": True},
            {"idx": 1, "title": "No", "paragraph_text": "t", "is_supporting": False},
        ],
    },
    "NQ, hub": {
        "id": "n",
        "document": {},
        "question": {"text": ASKED, "tokens": []},
        "annotations": {
            "id": ["1", "2"],
            "short_answers": [{"text": ["Dana Brisk"], "start_token": [1]}, {"text": ["Brisk"]}],
            "yes_no_answer": [-1, -1],
        },
    },
    "NQ, simplified": {
        "example_id": 7,
        "question_text": ASKED,
        "document_text": "It was Dana Brisk .",
        "annotations": [
            {"short_answers": [{"start_token": 2, "end_token": 4}, {"start_token": 3, "end_token": 4}], "yes_no_answer": "NONE"}
        ],
    },
    "WebQuestions": {"url": "u", "targetValue": '(list (description "Dana Brisk") (description Brisk))', "utterance": ASKED},
    "SQuAD, flat": {
        "id": "5",
        "context": "c",
        "question": ASKED,
        "answers": [{"text": "Dana Brisk", "answer_start": 0}, {"text": "Brisk", "answer_start": 5}],
    },
    "MRQA": {"qid": "m", "context": "c", "question": ASKED, "answers": ["Dana Brisk", "Brisk"]},
    "DROP": {
        "query_id": "d",
        "passage": "p",
        "question": ASKED,
        "answers": {"spans": ["Dana Brisk", "Brisk"], "types": ["span", "span"]},
    },
    "Ragas": {"user_input": ASKED, "references": ["Dana Brisk", "Brisk"], "reference": "Dana Brisk"},
    "capitals": {"Question": ASKED, "Answer": ["Dana Brisk", "Brisk"]},
    "words": {"Question ": ASKED, "Gold-Answers": ["Dana Brisk", "Brisk"]},
    "numbered": {"question": ASKED, "answer_0": "Dana Brisk", "answer_1": "Brisk", "answer_2": None},
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_others(tmp_path: Path, name: str) -> None:
    found = one(tmp_path / "q.jsonl", SHAPES[name])
    assert found.answers[:2] == ("Dana Brisk", "Brisk")
    assert len(json.dumps(found.metadata)) < 200  # passages and pages stay in the file
    assert one(tmp_path / "q.json", [SHAPES[name]]).answers == found.answers
    (wrapped,) = load(str(write_json(tmp_path / "w.json", {"version": 1, "data": [SHAPES[name]]})))
    assert wrapped.answers == found.answers


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_others_in_parquet(tmp_path: Path, name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    bare = {key: value for key, value in SHAPES[name].items() if value != {}}
    if name == "NQ, hub":
        bare["document"] = {"title": "t"}
    parquet.write_table(pyarrow.Table.from_pylist([bare]), tmp_path / "q.parquet")
    (found,) = load(str(tmp_path / "q.parquet"))
    assert load_unanswered(str(tmp_path / "q.parquet")) == [found]
    assert (found.text, found.answers[:2]) == (ASKED, ("Dana Brisk", "Brisk"))


def test_what_else_they_say(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    assert one(path, SHAPES["KILT"]).metadata == {"supporting": ("Orvel", "Tarn")}
    assert one(path, SHAPES["MuSiQue"]).metadata["supporting"] == ("Orvel",)
    assert one(path, SHAPES["MuSiQue"]).kind == "2hop"
    assert one(path, SHAPES["MuSiQue"] | {"answerable": False}).answers == ()
    none: dict[str, Any] = {"text": [], "answer_start": []}
    assert one(path, SHAPES["SQuAD, hub"] | {"answers": none}).metadata == {"title": "O", "answerable": False}
    unknown: dict[str, Any] = {"aliases": [], "value": "<unk>"}
    assert one(path, SHAPES["TriviaQA, hub"] | {"answer": unknown}).answers == ()
    yes: dict[str, Any] = {"id": ["1"], "short_answers": [{"text": []}], "yes_no_answer": [1]}
    assert one(path, SHAPES["NQ, hub"] | {"annotations": yes}).answers == ("yes",)


@pytest.mark.parametrize(
    ("record", "choices"),
    [
        (NUMBERED | {"subject": "keepers", "answer": 1}, 2),
        (NUMBERED | {"answer": "B"}, 2),
        ({"question": ASKED, "A": "Ann", "B": "Dana Brisk", "C": "Eve", "answer": "b".upper()}, 3),
        ({"Question": ASKED, "Option A": "Ann", "Option B": "Dana Brisk", "Correct Answer": "B"}, 2),
        ({"question": ASKED, "options": ["Ann", "Dana Brisk"], "answer": "B", "article": "a"}, 2),
        ({"id": "a", "question": ASKED, "choices": {"text": ["Ann", "Dana Brisk"], "label": ["1", "2"]}, "answerKey": "2"}, 2),
    ],
)
def test_multiple_choice(tmp_path: Path, record: dict[str, Any], choices: int) -> None:
    found = one(tmp_path / "q.jsonl", record)
    assert found.answers == ("Dana Brisk",)
    assert len(found.choices) == choices


@pytest.mark.parametrize("answer", [1, 2, [1]])
def test_a_number_that_may_be_a_choice_is_refused(tmp_path: Path, answer: object) -> None:
    with refused(InvalidInput):
        one(tmp_path / "q.jsonl", NUMBERED | {"answer": answer})
    assert one(tmp_path / "q.jsonl", NUMBERED | {"choices": ["1", "2"], "answer": 2}).answers == ("2",)


def test_beir_queries_and_their_judgements(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td7\t1\nq1\td8\t0\nq1\td9\t2\n")
    lines = [{"_id": "q1", "text": ASKED, "metadata": {}}, {"_id": "q2", "text": "Who?", "metadata": {}}]
    for name in ("queries.jsonl", "corpus.jsonl"):
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    first, second = load(str(tmp_path / "queries.jsonl"))
    assert first == Question("q1", ASKED, metadata={"supporting_ids": ("d7", "d9")})
    assert second == Question("q2", "Who?")
    (tmp_path / "queries").mkdir()
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "no.tsv")
    (tmp_path / "qrels" / "test.jsonl").write_text('{"query-id": "q2", "corpus-id": "d3", "score": 1.0}')
    (tmp_path / "queries" / "test.jsonl").write_text(json.dumps(lines[1]))
    assert load(str(tmp_path / "queries" / "test.jsonl"))[0].metadata == {"supporting_ids": ("d3",)}
    (tmp_path / "qrels" / "no.tsv").rename(tmp_path / "qrels" / "test.tsv")
    with refused(InvalidInput):
        load(str(tmp_path / "corpus.jsonl"))
    assert load_unanswered(str(tmp_path / "queries.jsonl")) == [first, second]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, encoding: str, delimiter: str, end: str) -> None:
    asked = 'Who, "kept";\nthe lighthouse|?'
    rows = [["ID", "Question", "Answer", ""], ["a", asked, "Dañ Brisk", ""], ["", "", "", ""]]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    for name in ("q.csv", "q.tsv"):
        (tmp_path / name).write_bytes(out.getvalue().encode(encoding))
        (found,) = load(str(tmp_path / name))
        assert (found.id, found.text, found.answers) == ("a", asked, ("Dañ Brisk",))
        assert load_unanswered(str(tmp_path / name)) == [found]


def test_excels_line_that_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("sep=;\nquestion;answer\nWho?;Ann\nWhere;\n")
    assert [question.answers for question in load(str(tmp_path / "q.csv"))] == [("Ann",), ()]
    (tmp_path / "q.csv").write_text("sep=;\nquestion;answer\nWho?;Ann;x\n")
    with refused(InvalidInput):
        load(str(tmp_path / "q.csv"))


def test_other_encodings_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes("question,answer\nWer?,Jürgen\n".encode("cp1252"))
    with refused(InvalidInput):
        load(str(tmp_path / "q.csv"))
    (tmp_path / "q.csv").write_bytes("question,answer\nWer?,Jürgen\n".encode("utf-16")[:-1])
    with refused(InvalidInput):
        load(str(tmp_path / "q.csv"))


def test_lines_of_json_in_utf16(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_bytes(json.dumps({"Question": "Wer?", "Answer": "Jürgen"}).encode("utf-16"))
    (found,) = load(str(tmp_path / "q.jsonl"))
    assert found.answers == ("Jürgen",)


@pytest.mark.parametrize(
    ("written", "answers"),
    [
        ('["Dana Brisk", "D. Brisk"]', ("Dana Brisk", "D. Brisk")),
        ("['Dana Brisk', \"D'Or\"]", ("Dana Brisk", "D'Or")),
        ("['Dana Brisk' 'D. Brisk']", ("Dana Brisk", "D. Brisk")),
        ("['Dana Brisk'\n 'D. Brisk']", ("Dana Brisk", "D. Brisk")),
        ("array(['Dana Brisk', 'D. Brisk'], dtype=object)", ("Dana Brisk", "D. Brisk")),
        ("{'text': array(['Dana Brisk'], dtype=object), 'answer_start': array([3])}", ("Dana Brisk",)),
        ('{"text": ["Dana Brisk"], "answer_start": [3]}', ("Dana Brisk",)),
        ("[1984, true]", ("1984", "yes")),
        ("[]", ()),
        ("", ()),
        ("Brisk, Dana", ("Brisk, Dana",)),
        ("x[0]", ("x[0]",)),
    ],
)
def test_a_list_in_a_cell(tmp_path: Path, written: str, answers: tuple[str, ...]) -> None:
    assert cell(tmp_path, written) == answers


@pytest.mark.parametrize(
    ("asked", "written", "answers"),
    [
        (
            "Is Orvel a lighthouse?",
            ("True", "FALSE", "true", '["True"]', "Yes", "maybe"),
            ("yes", "no", "yes", "yes", "Yes", "maybe"),
        ),
        ("Which album did Avicii bring out in 2013?", ("True", "False"), ("True", "False")),
        ("True or false: Orvel is a lighthouse.", ("True", "FALSE"), ("True", "FALSE")),
    ],
)
@pytest.mark.parametrize("name", ["q.csv", "q.tsv"])
def test_true_and_false_in_a_cell_are_yes_and_no_where_the_question_asks_so(
    tmp_path: Path, name: str, asked: str, written: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",")
        writer.writerows([("question", "answer"), *((asked, one) for one in written)])
    assert [one.answers for one in load(str(tmp_path / name))] == [(one,) for one in answers]


def test_true_and_false_that_are_choices_or_text_stay(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,A,B,answer\nIs it?,True,False,True\nIs it?,True,False,B\n", encoding="utf-8")
    assert [one.answers for one in load(str(tmp_path / "q.csv"))] == [("True",), ("False",)]
    (tmp_path / "q.jsonl").write_text('{"question": "Is it?", "answer": "True"}\n', encoding="utf-8")
    assert [one.answers for one in load(str(tmp_path / "q.jsonl"))] == [("True",)]


@pytest.mark.parametrize("written", ["Ann|Anna", "Ann | Anna", "Ann; Anna", "Ann\nAnna", "[Ann, Anna]", "['Ann' 'An' + 'na']"])
def test_a_cell_that_may_hold_several_answers_is_refused(tmp_path: Path, written: str) -> None:
    with refused(InvalidInput):
        cell(tmp_path, written)


def test_one_answer_may_have_a_semicolon(tmp_path: Path) -> None:
    assert cell(tmp_path, "In spring; or later", "answer") == ("In spring; or later",)
    with refused(InvalidInput):
        cell(tmp_path, "Ann | Anna", "answer")


ANSWERS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).map(str.strip).filter(bool), unique=True
)


@settings(max_examples=settings().max_examples // 3)
@given(ANSWERS)
def test_lists_written_by_json_and_python_come_back(tmp_path_factory: pytest.TempPathFactory, answers: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp()
    assert cell(folder, json.dumps(answers)) == cell(folder, repr(answers)) == tuple(answers)


@settings(max_examples=settings().max_examples // 3)
@given(
    st.lists(st.text("ab '\"\\", min_size=1, max_size=5), min_size=2, max_size=4, unique=True).filter(
        lambda all_: all(a.strip() == a for a in all_)
    )
)
def test_arrays_written_by_numpy_come_back(tmp_path_factory: pytest.TempPathFactory, answers: list[str]) -> None:
    import numpy as np

    assert cell(tmp_path_factory.getbasetemp(), str(np.array(answers, dtype=object))) == tuple(answers)


@pytest.mark.parametrize("content", ["Frage,Antwort\nWer?,Ann\n", "question,antwort\nWer?,Ann\n", "frage,answer\nWer?,Ann\n"])
def test_what_is_missing_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "q.csv").write_text(content)
    with refused(InvalidInput):
        load(str(tmp_path / "q.csv"))


def test_the_nearest_format_is_named(tmp_path: Path) -> None:
    write_json(tmp_path / "q.jsonl", {"asked": "Who?", "paragraphs": [{"x": 1}], "answer": "x", "answer_aliases": []})
    with refused(InvalidInput):
        load(str(tmp_path / "q.jsonl"))

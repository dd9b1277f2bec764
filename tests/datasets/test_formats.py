"""Each format of a file of questions: what is read of a record, what is refused, and the official files."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.datasets import Record, data_sets, load
from gnothi.datasets.formats import choice, generic
from gnothi.errors import InvalidInput
from gnothi.methods.steps.parsing import as_choice, read_reply
from gnothi.types import Question
from tests import made_data as made
from tests.cases import each
from tests.messages import refused

Item = dict[str, Any]
COWS = "What do cows eat?"
LISTED = [{"label": "A", "text": "hay"}, {"label": "B", "text": "milk"}]
COLUMNS = {"label": ["A", "B"], "text": ["hay", "milk"]}
STEM = {"stem": COWS, "choices": LISTED}
OPENBOOKQA: Item = {"id": "7-1", "question": STEM, "answerKey": "A"}
COMMONSENSEQA: Item = {"id": "c1", "question": COWS, "question_concept": "cow", "choices": COLUMNS, "answerKey": "A"}
MEDQA: Item = {"question": COWS, "answer": "hay", "options": {"A": "hay", "B": "milk"}, "answer_idx": "A", "meta_info": "step1"}
HOTPOTQA: Item = {
    "_id": "a", "question": "Who?", "answer": "Ann", "type": "comparison", "level": "easy",
    "supporting_facts": [["T", 0], ["T", 1], ["U", 0]], "context": [["T", ["One.", "Two."]], ["U", ["Three."]]],
}  # fmt: skip
TWO_WIKI: Item = {
    "_id": "a", "type": "compositional", "question": "Where was the director of Film T born?", "answer": "Paris",
    "context": [["Film T", ["One.", "Two."]], ["Ann", ["Three."]]], "supporting_facts": [["Film T", 0], ["Ann", 0]],
    "evidences": [["Film T", "director", "Ann"], ["Ann", "place of birth", "Paris"]], "answer_id": "Q3",
}  # fmt: skip
STRATEGYQA: Item = {
    "qid": "a", "term": "T", "question": "Is it?", "answer": False, "facts": ["F."], "decomposition": ["Is #1?"]
}  # fmt: skip
POPQA: Item = {
    "id": 7, "prop": "place of birth", "question": "Where?", "possible_answers": '["Rome", "Roma"]', "s_pop": 12
}  # fmt: skip
SELFAWARE: Item = {"question_id": 7, "question": "Who?", "answer": ["Ann"], "answerable": True, "source": "squad"}
OPEN: Item = {"question_id": 8, "question": "Why is there something?", "answer": None, "answerable": False}
SQUAD: Item = {"id": "a", "question": "How many?", "answers": [{"text": "308", "answer_start": 3}, {"text": "308"}]}
TRIVIAQA: Item = {
    "Answer": {"Aliases": ["Saint-Malo", "St-Malo"], "NormalizedAliases": ["saint malo", "st malo"], "Value": "Saint-Malo"},
    "EntityPages": [], "Question": "Which port?", "QuestionId": "qx_1", "QuestionSource": "http://quiz.example/",
}  # fmt: skip
TRUTHFULQA: Item = {
    "Type": "Non-Adversarial", "Category": "Bread", "Question": "What, if anything, does toast feel?", "Best Answer": "Nothing",
    "Correct Answers": "Nothing;  Toast feels nothing ; ", "Incorrect Answers": "Pain; Joy", "Source": "",
}  # fmt: skip


def iirc_item(qid: str, **answer: Any) -> Item:
    return {"qid": qid, "question": f"Question {qid}?", "answer": answer, "context": [], "question_links": ["town"]}


def of_iirc(*questions: Any) -> list[Item]:
    return [{"pid": "p_0", "title": "A ship", "text": "...", "links": [], "questions": questions}]


ODD_ANSWERS: tuple[Any, ...] = ("Saint-Malo", {"Aliases": []}, {"Value": "", "Aliases": []}, {"Value": {}})


def of_squad(*questions: Item) -> Item:
    articles = [{"title": "Bowl", "paragraphs": [{"context": "There are 308.", "qas": [one]}]} for one in questions]
    return {"version": "1.1", "data": articles}


def written(path: Path, content: Any) -> str:
    """As JSON; a table by a name that ends so; text as it is."""
    if path.name.endswith((".csv", ".tsv")) and isinstance(content, dict):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(content), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerow(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def cows(id: str, **metadata: object) -> Question:
    return Question(id, COWS, ("hay",), ("hay", "milk"), "choice", metadata)


SUPPORTING = {"supporting": ("T", "U"), "level": "easy"}
PLACE = Question("7", "Where?", ("Rome", "Roma"), kind="place_of_birth", metadata={"popularity": 12})
TOAST = Question(
    "1", TRUTHFULQA["Question"], ("Nothing", "Toast feels nothing"), kind="non_adversarial",
    metadata={"category": "Bread", "incorrect_answers": ("Pain", "Joy")},
)  # fmt: skip
PORT = Question(
    "qx_1", "Which port?", ("Saint-Malo", "St-Malo", "saint malo", "st malo"), metadata={"source": "http://quiz.example/"}
)
READ: list[tuple[str, Any, str, list[Question]]] = [
    ("q.jsonl", OPENBOOKQA, "openbookqa", [cows("7-1")]),
    ("q.jsonl", OPENBOOKQA | {"fact1": "cows graze", "humanScore": "1"}, "openbookqa", [cows("7-1", fact="cows graze")]),
    ("q.jsonl", {"id": "7", "question_stem": COWS, "choices": COLUMNS, "answerKey": "A"}, "openbookqa", [cows("7")]),
    ("q.jsonl", COMMONSENSEQA, "commonsenseqa", [cows("c1", concept="cow")]),
    (
        "q.jsonl",
        {"id": "c1", "question": STEM | {"question_concept": "cow"}, "answerKey": "A"},
        "commonsenseqa",
        [cows("c1", concept="cow")],
    ),
    ("q.jsonl", MEDQA, "medqa", [cows("1", exam="step1")]),
    ("q.jsonl", {key: MEDQA[key] for key in ("question", "answer", "options")}, "medqa", [cows("1")]),
    ("q.jsonl", {"question": COWS, "choices": ["hay", "milk"], "answer": "A", "type": "choice"}, "jsonl", [cows("1")]),
    (
        "q.jsonl",
        {"question": COWS, "A": "hay", "B": "milk", "C": None, "answer": "A", "type": "choice"},
        "jsonl",
        [cows("1", C=None)],
    ),
    ("dev.json", [HOTPOTQA], "hotpotqa", [Question("a", "Who?", ("Ann",), kind="comparison", metadata=SUPPORTING)]),
    (
        "hub.json",
        [HOTPOTQA | {"supporting_facts": {"title": ["T", "T", "U"], "sent_id": [0, 1, 0]}}],
        "hotpotqa",
        [Question("a", "Who?", ("Ann",), kind="comparison", metadata=SUPPORTING)],
    ),
    (
        "dev.json",
        [TWO_WIKI],
        "2wikimultihopqa",
        [
            Question(
                "a",
                TWO_WIKI["question"],
                ("Paris",),
                kind="compositional",
                metadata={"supporting": ("Film T", "Ann"), "evidences": tuple(map(tuple, TWO_WIKI["evidences"]))},
            )
        ],
    ),
    (
        "dev.json",
        [STRATEGYQA],
        "strategyqa",
        [
            Question(
                "a",
                "Is it?",
                ("no",),
                kind="yes_no",
                metadata={"term": "T", "facts": ("F.",), "decomposition": ("Is #1?",), "supporting": ()},
            )
        ],
    ),
    (
        "dev.json",
        of_iirc(
            iirc_item("q1", type="span", answer_spans=[{"text": "the sea ", "passage": "town"}, {"text": "a bay"}]),
            iirc_item("q2", type="value", answer_value="53", answer_unit="years"),
            iirc_item("q3", type="binary", answer_value="no"),
            iirc_item("q4", type="none"),
            iirc_item("q5", type="bad"),
        ),
        "iirc",
        [
            Question(id, f"Question {id}?", answers, kind=kind, metadata={"title": "A ship", "answerable": bool(answers)})
            for id, kind, answers in (
                ("q1", "span", ("the sea", "a bay")),
                ("q2", "value", ("53",)),
                ("q3", "binary", ("no",)),
                ("q4", "none", ()),
            )
        ],
    ),
    ("popQA.tsv", POPQA, "popqa", [PLACE]),
    ("popqa.jsonl", POPQA, "popqa", [PLACE]),
    (
        "s.json",
        {"dataset_name": "SelfAware", "example": [SELFAWARE, OPEN]},
        "selfaware",
        [
            Question("7", "Who?", ("Ann",), kind="answerable", metadata={"answerable": True, "source": "squad"}),
            Question("8", OPEN["question"], kind="unanswerable", metadata={"answerable": False}),
        ],
    ),
    (
        "s.json",
        of_squad(SQUAD, {"id": "b", "question": "Why?", "answers": [], "is_impossible": True}),
        "squad",
        [
            Question("a", "How many?", ("308",), metadata={"title": "Bowl"}),
            Question("b", "Why?", metadata={"title": "Bowl", "answerable": False}),
        ],
    ),
    ("web-dev.json", {"Data": [TRIVIAQA], "Version": 1.0}, "triviaqa", [PORT]),
    ("lines.json", json.dumps({"Data": [TRIVIAQA], "Version": 1.0}, indent=4), "triviaqa", [PORT]),
    ("items.jsonl", TRIVIAQA, "triviaqa", [PORT]),
    ("test.json", {"Data": [{"Question": "Who?", "QuestionId": "q"}]}, "triviaqa", [Question("q", "Who?")]),
    ("t.csv", TRUTHFULQA, "truthfulqa", [TOAST]),
    ("nq.jsonl", {"question": "who?", "answer": ["Ann"]}, "nq_open", [Question("1", "who?", ("Ann",), kind="one_hop")]),
    ("q.jsonl", {"question": "who?", "answer": ["Ann"], "kind": "x"}, "jsonl", [Question("1", "who?", ("Ann",), kind="x")]),
    (
        "x-test.qa.csv",
        "Who?\t['Ann \"A.\" Lee', 'Ann']\n",
        "dpr",
        [Question("1", "Who?", ('Ann "A." Lee', "Ann"), kind="one_hop")],
    ),
]


@pytest.mark.parametrize(("name", "content", "format", "expected"), READ)
def test_what_is_read(tmp_path: Path, name: str, content: Any, format: str, expected: list[Question]) -> None:
    path = written(tmp_path / name, content)
    assert load(path) == load(path, format=format) == expected
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    assert load(f"{path}.gz") == expected


REFUSED: list[tuple[str, Any, str | None]] = [
    ("q.jsonl", OPENBOOKQA | {"answerKey": "E"}, None),
    ("q.jsonl", COMMONSENSEQA | {"answerKey": "E"}, None),
    *(("q.jsonl", OPENBOOKQA | {"question": stem}, "openbookqa") for stem in ("What?", {"stem": ""}, {"choices": LISTED})),
    ("q.jsonl", MEDQA | {"answer": "milk"}, None),
    ("q.jsonl", {"question": "Q?", "answer": "moss", "options": MEDQA["options"]}, None),
    ("q.jsonl", {"question": COWS, "answer": ["hay", "moss"], "options": MEDQA["options"]}, None),
    ("q.jsonl", {"question": "Who?", "answer": "x", "passages": ["text"]}, "hotpotqa"),
    *(("q.json", [TWO_WIKI | {"evidences": one}], None) for one in ("Ann", [["Ann", "born"]], [3])),
    ("q.json", [{"id": "2hop__1", "question": "Q?", "answer": "x", "paragraphs": [1]}], "musique"),
    ("q.json", [STRATEGYQA | {"decomposition": "Is #1?"}], None),
    ("q.json", of_iirc({"question": "?"}), None),
    ("q.json", of_iirc(iirc_item("q", type="date")), None),
    ("q.json", of_iirc(iirc_item("q", type="span", answer_spans=["text"])), None),
    ("q.json", of_iirc(iirc_item("q", type="value")), None),
    *(
        ("q.jsonl", POPQA | one, None)
        for one in ({"possible_answers": "[Rome"}, {"s_pop": "many"}, {"possible_answers": "[[1]]"})
    ),
    ("q.json", {"example": [OPEN, SELFAWARE | {"answerable": "yes"}]}, None),
    ("q.json", {"example": [OPEN, SELFAWARE | {"answer": []}]}, None),
    ("q.json", {"example": [OPEN, SELFAWARE | {"answerable": False}]}, None),
    *(
        ("q.json", of_squad(SQUAD | {"id": "z"}, SQUAD | other), None)
        for other in ({"answers": "308"}, {"question": " "}, {"id": ["x"]})
    ),
    ("q.json", of_squad(SQUAD, SQUAD), None),
    ("q.json", {"data": [{"paragraphs": [1]}]}, "squad"),
    *(("q.json", {"Data": [TRIVIAQA | {"Answer": answer}]}, None) for answer in ODD_ANSWERS),
    *(
        ("t.csv", TRUTHFULQA | {empty: ""}, None)
        for empty in ("Question", "Best Answer", "Correct Answers", "Incorrect Answers")
    ),
    ("t.csv", TRUTHFULQA | {"Incorrect Answers": " ; "}, None),
    ("t.jsonl", {"question": "Who?", "answer": "x"}, "truthfulqa"),
    ("x.csv", "Who?\tAnn", "dpr"),
    ("x.csv", "Who?", "dpr"),
    ("x.csv", "Who?\t[{}]", "dpr"),
]


@pytest.mark.parametrize(("name", "content", "format"), REFUSED)
def test_what_is_refused(tmp_path: Path, name: str, content: Any, format: str | None) -> None:
    with refused(InvalidInput):
        load(written(tmp_path / name, content), format=format)


@pytest.mark.parametrize("item", [OPENBOOKQA, COMMONSENSEQA])
def test_the_key_may_be_kept_back(tmp_path: Path, item: Item) -> None:
    kept = {key: value for key, value in item.items() if key != "answerKey"}
    assert load(written(tmp_path / "q.jsonl", kept))[0].answers == ()


def test_names_of_the_answer_count_where_the_scorers_file_lies_beside(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.json", [TWO_WIKI, TWO_WIKI | {"_id": "b", "answer": "yes", "answer_id": None}])
    lines: list[Item] = [
        {"Q_id": "Q3", "aliases": ["Lutetia", "Paris"], "demonyms": ["Parisian"]},
        {"Q_id": "Q9", "aliases": ["X"], "demonyms": []},
    ]
    written(tmp_path / "id_aliases.json", "\n".join(map(json.dumps, lines)))
    assert [question.answers for question in load(path)] == [("Paris", "Lutetia", "Parisian"), ("yes",)]
    written(tmp_path / "id_aliases.json", {"aliases": []})
    with refused(InvalidInput):
        load(path)


# Choices in their three shapes.

TEXTS = st.text(min_size=1, max_size=10).map(lambda text: " ".join(text.split())).filter(bool)


@settings(max_examples=settings().max_examples // 3)
@given(st.dictionaries(TEXTS, TEXTS, min_size=2, max_size=6), st.data())
def test_the_three_shapes_say_the_same(options: dict[str, str], data: st.DataObject) -> None:
    label = data.draw(st.sampled_from(sorted(options)))
    record = Record({"key": label}, "f, line 1", 1)
    shapes: list[Any] = [
        [{"label": label, "text": text} for label, text in options.items()],
        {"label": list(options), "text": list(options.values())},
        *([] if {"label", "text"} & options.keys() else [options]),
    ]
    for shape in shapes:
        found = choice.read(record, shape, "choices")
        assert (found.labels, found.texts) == (tuple(options), tuple(options.values()))
        assert found.right(record, "key") == (options[label],)


@pytest.mark.parametrize(
    "given",
    [None, "A", [], ["hay"], ["hay", 1], {}, {"A": "hay"}, {"A": 1, "B": 2}, COLUMNS | {"text": ["hay"]}, [LISTED[0]] * 2],
)
def test_choices_of_other_shapes(given: object) -> None:
    with refused(InvalidInput):
        choice.read(Record({}, "f, line 1", 1), given, "choices")


def test_the_in_house_list_divides_the_training_file(tmp_path: Path) -> None:
    lines = [json.dumps(COMMONSENSEQA | {"id": name}) for name in "abcd"]
    path = written(tmp_path / "train_rand_split.jsonl", "\n".join(lines))
    with refused(InvalidInput):
        load(f"csqa-inhouse:test:{path}")
    (tmp_path / "inhouse_split_qids.txt").write_text("c\na\n", encoding="utf-8")
    assert [one.id for one in load(f"csqa-inhouse:train:{path}")] == ["a", "c"]
    assert [one.id for one in load(f"csqa-inhouse:test:{path}", limit=1)] == ["b"]
    for argument in ("csqa-inhouse", "csqa-inhouse:dev:x", "csqa-inhouse:test"):
        with refused(InvalidInput):
            load(argument)
    assert "csqa-inhouse" in data_sets()


# The keys that people use, and DPR's rows.


def record(**data: Any) -> Record:
    return Record({"question": " Who? ", **data}, "f.jsonl, line 7", 7)


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        ("Ann", ("Ann",)),
        (["Ann", "Anna", "Ann", " "], ("Ann", "Anna")),
        (True, ("yes",)),
        ([False], ("no",)),
        (1984, ("1984",)),
        ([], ()),
        (None, ()),
    ],
)
def test_answers(given: Any, answers: tuple[str, ...]) -> None:
    for key in ("answers", "answer", "gold", "golden_answers"):
        assert generic.generic.question(record(**{key: given})).answers == answers


def test_aliases_are_added_and_the_rest_is_metadata() -> None:
    assert generic.generic.question(record(answer="Ann", aliases=["Anna", "Ann"])).answers == ("Ann", "Anna")
    found = generic.generic.question(record(answer="x", type="bridge", choices=["x", "y"], level="hard", metadata={"hops": 2}))
    assert found == Question("7", "Who?", ("x",), ("x", "y"), "bridge", {"level": "hard", "hops": 2})


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("text", [NESTED, f'{{"question": {NESTED}}}', f'{{"question": "x", "answer": {NESTED}}}', "9" * 4000])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_nested_deeply_and_long_numbers_are_refused_with_their_place(tmp_path: Path, name: str, text: str) -> None:
    with refused(InvalidInput):
        load(written(tmp_path / name, text))


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=3)), min_size=1, max_size=4))
def test_rows_as_pythons_csv_module_writes_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-test.qa.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows((text, str(answers)) for text, answers in rows)
    assert [(one.id, one.text, one.answers) for one in load(str(path))] == [
        (str(number), text.strip(), tuple(dict.fromkeys(map(str.strip, answers))))
        for number, (text, answers) in enumerate(rows, 1)
    ]


# The official files, and what is made in their shapes: how many questions, and of one of them its number and what it says.

Check = Callable[[Sequence[Question]], bool]
SHOWN: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("hotpotqa.jsonl", "hotpotqa", made.QUESTIONS, 0, {"id": "h200", "answers": ("yes",), "kind": "bridge"}),
    ("hotpotqa.jsonl", "hotpotqa", made.QUESTIONS, 1, {"answers": (made.town(201),)}),
    ("2wikimultihopqa.jsonl", "hotpotqa", made.QUESTIONS, 0, {}),
    (
        "nq_open.dev.jsonl", "nq_open", made.QUESTIONS, 3,
        {"id": "4", "text": "where does river 3 spring", "answers": (made.town(3), f"near {made.town(3)}"), "kind": "one_hop"},
    ),
    (
        "popqa.json", "popqa", made.ENTITIES, 1,
        {"id": "1", "kind": "occupation", "answers": ("potter", "master potter"), "metadata": {"popularity": 101}},
    ),
    ("selfaware.json", "selfaware", 25, 20, {"kind": "unanswerable", "answers": ()}),
    ("xquad.en.json", "squad", made.QUESTIONS, 5, {"answers": (made.town(105),), "metadata": {"title": "Rivers_from_105"}}),
    ("strategyqa.dev.json", "strategyqa", made.QUESTIONS, 2, {"answers": ("yes",), "kind": "yes_no"}),
    ("truthfulqa.csv", "truthfulqa", made.QUESTIONS, 1, {"kind": "adversarial"}),
    ("commonsenseqa.dev.jsonl", "commonsenseqa", made.QUESTIONS, 0, {"answers": (made.chosen(0)[1],)}),
    ("openbookqa.test.jsonl", "openbookqa", made.QUESTIONS, 1, {"answers": (made.chosen(1)[1],)}),
    ("medqa.test.jsonl", "medqa", made.QUESTIONS, 2, {"answers": (made.chosen(2)[1],)}),
    ("recorded/nq.test.jsonl", "jsonl", made.RECORDED, 0, {}),
]  # fmt: skip
REAL: list[tuple[str, str, int, int, dict[str, Any]]] = [
    (
        "hotpotqa.jsonl", "hotpotqa", 500, 0,
        {"id": "5ac07327554299012d1db5f2", "answers": ("an American football quarterback",), "kind": "bridge"},
    ),
    ("2wikimultihopqa.jsonl", "hotpotqa", 500, 0, {}),
    (
        "nq_open.dev.jsonl", "nq_open", 3610, 0,
        {
            "id": "1", "text": "when was the last time anyone was on the moon", "kind": "one_hop",
            "answers": ("14 December 1972 UTC", "December 1972"),
        },
    ),
    ("popqa.json", "popqa", 1000, 0, {"metadata": {"popularity": 142}}),
    ("selfaware.json", "selfaware", 3369, 0, {"id": "1", "answers": ("song",)}),
    ("xquad.en.json", "squad", 1190, 0, {"answers": ("308",), "metadata": {"title": "Super_Bowl_50"}}),
    ("strategyqa.train.json", "strategyqa", 2061, 0, {"id": "2bc9c4f9c19c167187f2", "answers": ("yes",), "kind": "yes_no"}),
    ("strategyqa.dev.json", "strategyqa", 229, 0, {"kind": "yes_no"}),
    ("truthfulqa.csv", "truthfulqa", 817, 0, {"id": "1"}),
    ("commonsenseqa.dev.jsonl", "commonsenseqa", 1221, 0, {"kind": "choice"}),
    ("openbookqa.test.jsonl", "openbookqa", 500, 0, {"kind": "choice"}),
    ("medqa.test.jsonl", "medqa", 1273, 0, {"kind": "choice"}),
    ("recorded/nq.test.jsonl", "jsonl", 500, 0, {}),
]  # fmt: skip
CHECKS: dict[str, Check] = {
    "hotpotqa": lambda found: all(len(one.metadata["supporting"]) == 2 for one in found if one.kind == "bridge"),
    "nq_open": lambda found: all(one.answers for one in found),
    "popqa": lambda found: all(one.answers for one in found),
    "selfaware": lambda found: all(bool(one.answers) == one.metadata["answerable"] for one in found),
    "squad": lambda found: all(one.answers for one in found),
    "strategyqa": lambda found: all(one.answers[0] in ("yes", "no") and one.metadata["decomposition"] for one in found),
    "truthfulqa": lambda found: all(one.metadata["incorrect_answers"] for one in found),
    "jsonl": lambda found: all("no_retrieval" in one.metadata for one in found),
}


def file_read(path: Path, format: str, count: int, number: int, said: dict[str, Any]) -> None:
    found = load(str(path))
    assert len(found) == count
    assert found == load(str(path), format=format)
    assert {name: getattr(found[number], name) for name in said} == said
    if format in CHECKS:
        assert CHECKS[format](found)
    else:  # multiple choice
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for question, line in zip(found, lines, strict=True):
            position = "ABCDE".index(line.get("answerKey") or line["answer_idx"])
            assert question.answers == (question.choices[position],)


@pytest.mark.parametrize(("name", "format", "count", "number", "said"), SHOWN)
def test_files_in_the_official_forms(
    made_data: Path, name: str, format: str, count: int, number: int, said: dict[str, Any]
) -> None:
    file_read(made_data / name, format, count, number, said)


def test_the_official_files(shared_data: Path) -> None:
    each(file_read, [(shared_data / name, *rest) for name, *rest in REAL])


def every_row_comes_back(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for question, row in zip(load(str(path)), rows, strict=True):
        assert (question.text, question.answers[0]) == (row["Question"].strip(), row["Best Answer"].strip())
        best = set(row["Best Answer"].split())
        for answers, column in (
            (question.answers, "Correct Answers"),
            (question.metadata["incorrect_answers"], "Incorrect Answers"),
        ):
            assert set(" ".join(answers).split()) <= set(row[column].replace(";", " ").split()) | best


def test_every_row_of_truthfulqa_comes_back(made_data: Path) -> None:
    every_row_comes_back(made_data / "truthfulqa.csv")


def test_every_row_of_the_official_table_comes_back(shared_data: Path) -> None:
    every_row_comes_back(shared_data / "truthfulqa.csv")


CHOICES = ("commonsenseqa.dev.jsonl", "openbookqa.test.jsonl", "medqa.test.jsonl")


def lost_as_a_reply(data: Path) -> list[str]:
    return [
        name
        for name in CHOICES
        for question in load(str(data / name))
        for choice in question.choices
        if as_choice(read_reply(choice).answer, question.choices) != choice
    ]


def test_choices_survive_being_written_as_a_reply(made_data: Path) -> None:
    assert lost_as_a_reply(made_data) == []


def test_choices_of_the_official_files_survive_being_written_as_a_reply(shared_data: Path) -> None:
    """All but two of MedQA, which begin with the same sentence, of which a short answer keeps no more."""
    assert lost_as_a_reply(shared_data) == ["medqa.test.jsonl"] * 2

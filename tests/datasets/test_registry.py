"""Loading by name and from files, and what is said about files that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.datasets import DATASETS, file_formats, load
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.types import Question
from tests.messages import refused


def write(path: Path, *records: object) -> str:
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", encoding="utf-8")
    return str(path)


def numbered(argument: str, limit: int | None) -> Iterable[Question]:
    """Questions without end, or one."""
    return (Question(str(n), f"q{n}?") for n in (range(limit or 10**9) if not argument else [7]))


@pytest.fixture
def named() -> Iterator[None]:
    DATASETS.add("numbered", numbered)
    yield
    DATASETS.remove("numbered")


@pytest.mark.usefixtures("named")
def test_data_sets_have_names_and_parts() -> None:
    assert [question.id for question in load("numbered", limit=2)] == ["0", "1"]
    assert load("numbered:one") == [Question("7", "q7?")]
    with refused(UnknownName):
        load("numbred")
    with refused(InvalidSetting):
        load("numbered", format="jsonl")


def test_the_laboratorys_questions_come_by_kind() -> None:
    assert {question.kind for question in load("lab:one_hop", limit=20)} == {"one_hop"}
    assert len(load("lab")) == 500
    assert len(load("lab-train:choice", limit=3)) == 3
    with refused(UnknownName):
        load("lab:one_hops")


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_is_at_least_one(limit: int) -> None:
    with refused(InvalidSetting):
        load("lab", limit=limit)


def test_formats_are_recognised(tmp_path: Path) -> None:
    generic = write(tmp_path / "g.jsonl", {"query": "Who?", "gold": "Ann"})
    multihop = write(
        tmp_path / "h.jsonl",
        {"question": "Who?", "answers": ["Ann"], "passages": [{"title": "T", "text": "t", "supporting": True}]},
    )
    assert load(generic)[0].answers == ("Ann",)
    assert load(multihop)[0].metadata == {"supporting": ("T",)}
    assert "passages" in load(multihop, format="jsonl")[0].metadata


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    with refused(UnknownName):
        load(write(tmp_path / "g.jsonl", {"question": "Who?", "answer": "Ann"}), format="csv")
    with refused(InvalidInput):
        load(write(tmp_path / "g.jsonl", {"title": "T", "text": "t"}))


@pytest.mark.parametrize(
    "line",
    [
        b"{not json",
        b'["a list"]',
        b'{"question": "", "answer": "x"}',
        b'{"question": 5, "answer": "x"}',
        b'{"question": "Who?"}',
        b'{"answer": "x"}',
        b'{"question": "Who?", "answer": {"worth": "x"}}',
        b'{"question": "Who?", "answer": "x", "choices": "a, b"}',
        b'{"question": "Who?", "answer": "x", "id": 1.5}',
        b'{"question": "Who?", "answer": "x", "id": "a"}',
        b'{"question": "Who?", "answer": "x", "metadata": 3}',
        b'{"question": "Who?", "answer": [], "answerable": "no"}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"question": "Who?", "answer": "x", "id": 4}\n{"question": "Who?", "answer": "x"}',
        b'{"question": "Who?", "answer": "x"}\n{"question": "Why?", "answer": "x", "id": "3"}',
        b'{"question": "Who?", "answers": ["x"], "answers": ["y"]}',
        b'{"question": "Who?", "answer": {"text": "x", "text": "y"}}',
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"question": "Who?", "answer": "x", "id": "a"}\n\n' + line + b"\n")
    with refused(InvalidInput):
        load(str(path))


def test_a_limit_reads_no_further(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "Who?", "answer": "x"}\nnot json\n', encoding="utf-8")
    assert len(load(str(path), limit=1)) == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[]"])
def test_a_file_without_questions(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(content)
    with refused(InvalidInput):
        load(str(path))


def test_no_file(tmp_path: Path) -> None:
    with refused(InvalidInput):
        load(str(tmp_path / "absent.jsonl"))
    with refused(InvalidInput):
        load(str(tmp_path))


def test_an_array_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text('\ufeff[{"question": "Who?", "answer": "x"}, 3]', encoding="utf-8")
    assert load(str(path), limit=1)[0].id == "1"
    with refused(InvalidInput):
        load(str(path))
    for broken in ('[{"question": "Who?",\n "answer": }]', '[{"question": "Who?", "answer": "x", "answer": "y"}]'):
        path.write_text(broken, encoding="utf-8")
        with refused(InvalidInput):
            load(str(path))


def test_one_object_over_several_lines_must_list_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text('{\n  "question": "Who?",\n  "answer": "x"\n}\n', encoding="utf-8")
    with refused(InvalidInput):
        load(str(path))
    path.write_text('{\n  "Data": [\n  {"Question": }]\n}\n', encoding="utf-8")
    with refused(InvalidInput):
        load(str(path))


def test_lines_may_have_a_key_that_lists_records_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", *({"question": "Who?", "answer": "x", "example": [{"question": "y"}]} for _ in range(2)))
    assert len(load(path)) == 2


@settings(max_examples=settings().max_examples // 3)
@given(st.binary(max_size=200))
def test_any_bytes_give_questions_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    for name in ("any.jsonl", "any.csv", "any.txt"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(content)
        for format in [None, *file_formats()]:
            with pytest.raises(InvalidInput):
                load(str(path), format=format)


KEYS = st.sampled_from(
    "id question Question QuestionId Answer Value answer answers answerable options answer_idx choices label text stem "
    "question_concept question_stem answerKey Data example".split()
)
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "A", "B", "x", "Who?"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@settings(max_examples=settings().max_examples // 3)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=7))
def test_any_object_gives_questions_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]) -> None:
    path, said = write(tmp_path_factory.getbasetemp() / "object.jsonl", data), []
    for format in [None, *file_formats()]:
        try:
            questions = load(path, format=format)
        except InvalidInput as error:
            said.append(str(error))
        else:
            assert all(question.text.strip() for question in questions)
            assert all(isinstance(text, str) for question in questions for text in (*question.answers, *question.choices))
    assert all("object.jsonl" in message for message in said)


TEXT = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)
ANSWER = TEXT.filter(lambda text: len(text) > 1 or not "A" <= text <= "Z")  # a letter may be the label of a choice
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


@settings(max_examples=40)
@given(
    st.lists(
        st.builds(
            Question,
            id=TEXT,
            text=TEXT,
            answers=st.lists(ANSWER, unique=True).map(tuple),
            choices=st.lists(TEXT).map(tuple),
            kind=st.just("") | TEXT,
            metadata=st.dictionaries(TEXT.filter("answerable".__ne__), JSON),
        ),
        min_size=1,
        unique_by=lambda question: question.id,
    )
)
def test_questions_written_as_lines_come_back(tmp_path_factory: pytest.TempPathFactory, questions: list[Question]) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    records = [
        {"id": q.id, "question": q.text, "answers": q.answers, "choices": q.choices, "kind": q.kind, "metadata": q.metadata}
        for q in questions
    ]
    assert load(write(path, *records), format="jsonl") == questions

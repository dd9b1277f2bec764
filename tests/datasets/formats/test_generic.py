"""One question a line, in the keys that people use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import Record, load
from gnothi.datasets.formats import generic
from gnothi.errors import InvalidInput
from tests import made_data as made

# The generic format's keys.


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


def test_aliases_are_added() -> None:
    assert generic.generic.question(record(answer="Ann", aliases=["Anna", "Ann"])).answers == ("Ann", "Anna")


def test_the_rest() -> None:
    found = generic.generic.question(record(answer="x", type="bridge", choices=["x", "y"], level="hard", metadata={"hops": 2}))
    assert (found.id, found.text, found.kind, found.choices) == ("7", "Who?", "bridge", ("x", "y"))
    assert found.metadata == {"level": "hard", "hops": 2}


NESTED = "[" * 2000 + "]" * 2000


@pytest.mark.parametrize("text", [NESTED, f'{{"question": {NESTED}}}', f'{{"question": "x", "answer": {NESTED}}}', "9" * 4000])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_nested_deeply_and_long_numbers_are_refused_with_their_place(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"a\.jsonl?.*: got "):
        load(str(tmp_path / name))


def test_recorded_outcomes(made_data: Path) -> None:
    questions = load(str(made_data / "recorded" / "nq.test.jsonl"))
    assert len(questions) == made.RECORDED
    assert [question.metadata["no_retrieval"] == question.answers[0] for question in questions[:5]] == [True] * 3 + [False] * 2


def test_recorded_outcomes_of_a_real_model(shared_data: Path) -> None:
    questions = load(str(shared_data / "recorded" / "nq.test.jsonl"))
    assert len(questions) == 500
    assert questions[0].metadata["no_retrieval"] == "Grover Cleveland"

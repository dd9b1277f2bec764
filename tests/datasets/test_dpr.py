"""DPR's files of questions, as Python's csv module writes them, and packed ones."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.errors import InvalidInput

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

"""Tables: what Python's own writer wrote comes back, and what is said about broken ones."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.datasets.tables import read_table
from gnothi.errors import InvalidInput
from tests.messages import refused

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("one", "two"), *rows])
    found = list(read_table(path))
    filled = [row for row in rows if any(row)]
    assert [tuple(record.data.values()) for record in found] == filled
    assert [record.number for record in found] == list(range(1, len(filled) + 1))


def test_the_place_is_the_line_in_which_a_row_begins(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfone,two\r\n"a\r\nb",c\r\n\r\nd,e\r\n')
    assert [(record.place, dict(record.data)) for record in read_table(path)] == [
        (f"{path}, line 2", {"one": "a\r\nb", "two": "c"}),
        (f"{path}, line 5", {"one": "d", "two": "e"}),
    ]


@pytest.mark.parametrize("content", [b"one,two\na,b\nc\n", b'one,two\na,"b\n', b"one,two\na,\xff\n", b"one,one\na,b\n"])
def test_broken_tables(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with refused(InvalidInput):
        list(read_table(path))


def test_no_table(tmp_path: Path) -> None:
    with refused(InvalidInput):
        list(read_table(tmp_path / "absent.csv"))


def test_columns_of_the_usual_names(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id,question,answer\na,Who?,Ann\n", encoding="utf-8")
    (question,) = load(str(path))
    assert (question.id, question.text, question.answers) == ("a", "Who?", ("Ann",))

"""Tables of scores and outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.calibration.compare import document, read
from gnothi.calibration.from_file import is_recorded
from gnothi.calibration.from_table import read_scored
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from tests.messages import refused

ROWS = (
    "id,question,never,always,doubt,sureness,note\n"
    '1,"Who, then?",1,0,0.1,9,easy\n'
    "2,Where?,False,TRUE,2.5,1,\n"
    "3,When?,0.5,1,,3,hard\n"
)


def table(folder: Path, text: str = ROWS, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_outcomes_and_signals(tmp_path: Path) -> None:
    found = read_scored(table(tmp_path), surer=["sureness"])
    assert (found.dataset, found.names, found.metric) == ("scores", ("never", "always"), "as recorded")
    assert found.never.tolist() == [1, 0, 0.5]
    assert found.always.tolist() == [0, 1, 1]
    doubt, sureness = found.signals
    assert (doubt.name, doubt.values.tolist(), doubt.wrong.tolist()) == ("doubt", [0.1, 2.5, np.inf], [False, True, True])
    assert (sureness.sign, sureness.values.tolist()) == (-1, [-9, -1, -3])


def test_columns_by_other_names_and_tabs(tmp_path: Path) -> None:
    text = "closed\topen\tdoubt\n1\t0\t.5\n0\t1\t2\n"
    found = read_scored(table(tmp_path, text, "mine.tsv"), "closed", "open")
    assert [one.name for one in found.signals] == ["doubt"]
    with refused(UnknownName):
        read_scored(tmp_path / "mine.tsv")
    with refused(InvalidSetting):
        read_scored(tmp_path / "mine.tsv", "open", "open")


@pytest.mark.parametrize(
    "text",
    [
        "never,always\n",
        "never,always\n1,2\n",
        "never,always\nParis,Rome\n",
        "never,always\n1,\n",
        "never,always,doubt\n1,1,.5\n1,0,high\n",
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, text: str) -> None:
    with refused(InvalidInput):
        read_scored(table(tmp_path, text))


def test_gates_and_calibrations_know_a_table_by_its_columns(tmp_path: Path) -> None:
    path = table(tmp_path)
    assert is_recorded(path)
    assert not is_recorded(table(tmp_path, "question,answer\nWho?,I\n", "questions.csv"))
    assert not is_recorded(table(tmp_path, "", "empty.csv"))
    assert document(read(path)).gates.n == 3
    with refused(InvalidSetting):
        read(path, "em")
    with refused(UnknownName):
        read(path, surer=["sure"])


def test_parquet_is_the_same(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra parquet")
    pq = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, list[Any]] = {
        "id": [1, 2, 3],
        "never": [True, False, False],
        "always": [0.0, 1.0, 1.0],
        "doubt": [0.1, None, float("nan")],
        "seen": [True, False, True],
        "texts": [["a"], [], ["b"]],
    }
    pq.write_table(pa.table(columns), tmp_path / "scores.parquet")
    found = read_scored(tmp_path / "scores.parquet")
    assert found.never.tolist() == [1, 0, 0]
    assert [(one.name, one.values.tolist()) for one in found.signals] == [("doubt", [0.1, np.inf, np.inf])]
    assert is_recorded(tmp_path / "scores.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nothing")
    with refused(InvalidInput):
        read_scored(tmp_path / "broken.parquet")


def test_texts_stand_under_the_names_of_the_ends(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("question,closed,open,closed_answer,open_answer\nWho wrote Emma?,0,1,Burney,Jane Austen\n", "utf-8")
    (texts,) = read_scored(path, "closed", "open").texts
    assert (texts.question, texts.memory, texts.evidence) == ("Who wrote Emma?", "Burney", "Jane Austen")
    path.write_text("never,always\n0,1\n", "utf-8")
    assert read_scored(path).texts[0].question is None

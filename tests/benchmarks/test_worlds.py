"""Means and spread over worlds, as scipy has them; the commands name each world's own model and questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.worlds import commands, differences, scores
from gnothi.runs.rows import Row

COST = {"retrievals": 1, "model_calls": 2, "prompt_tokens": 30, "generated_tokens": 4, "seconds": 0.1}
SHARES = {0: (0.5, 0.25), 1: (0.75, 0.25), 2: (1.0, 0.5)}


def _rows(method: str, right: float) -> list[Row]:
    metrics = [{"em": float(number < right * 8), "f1": 0.0, "accuracy": 0.0} for number in range(8)]
    return [Row(method, f"q{number}", "Who?", "Ada", metrics=found, cost=COST) for number, found in enumerate(metrics)]


WORLDS = {seed: {"seakr": _rows("seakr", first), "rag": _rows("rag", second)} for seed, (first, second) in SHARES.items()}


def test_means_and_spread() -> None:
    line = next(line for line in scores(WORLDS) if line.startswith("| seakr"))
    assert [cell.strip() for cell in line.split("|")[2:7]] == ["0.500", "0.750", "1.000", "0.750", "0.250"]


def test_the_interval_over_worlds_is_students() -> None:
    line = differences(WORLDS)[-1]
    found = np.array([first - second for first, second in SHARES.values()])
    low, high = stats.ttest_1samp(found, 0).confidence_interval(0.95)
    assert line.rstrip(" |").endswith(f"{low:+.3f} to {high:+.3f}")
    assert f"{found.mean():+.3f}" in line


def test_each_world_has_its_own_model_and_questions(tmp_path: Path) -> None:
    made = list(commands([0, 7], tmp_path, 50))
    assert [words[0] for words in made] == ["eval", "eval", "lab", "eval", "eval"]
    assert made[0][1:4] == ["lab:0", "--model", "lab"]
    assert made[2] == ["lab", "train", "--seed", "7", "--out", str(tmp_path / "model-7")]
    assert made[3][1:4] == ["lab:7", "--model", str(tmp_path / "model-7")]

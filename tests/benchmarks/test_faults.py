"""The campaign of faults in its short form: seeded, and what it finds is no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks._faults_mutate import mutate

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of Linux")


def campaign(*arguments: str) -> Any:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.faults", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_change_is_drawn_from_the_seed_alone(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        file = tmp_path / name / "x.jsonl"
        file.parent.mkdir()
        file.write_text('{"a": 1, "b": [1, 2]}\n{"a": "x"}\n' * 3)
        rng = Random(7)
        told = [mutate(file, rng) for _ in range(3)]
        made.append((told, file.read_bytes()))
    assert made[0] == made[1]
    assert made[0][1] != b'{"a": 1, "b": [1, 2]}\n{"a": "x"}\n' * 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("part", "trials"), [("fuzz", "300"), ("api", "300"), ("remote", "3"), ("killed", "20"), ("stopped", "20"), ("world", "20")]
)
def test_short_form_finds_nothing(part: str, trials: str, tmp_path: Path) -> None:
    found = campaign("--part", part, "--minutes", "10", "--trials", trials, "--seed", "15", "--out", str(tmp_path))
    assert found["trials"] == int(trials)
    assert {name: one for name, one in found["findings"].items() if one["confirmed"]} == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("plant", ["dropped fsync", "swallowed error", "double append", "lock ignored"])
def test_a_planted_mistake_is_found(plant: str, tmp_path: Path) -> None:
    found = campaign("--part", "planted", "--only", plant, "--minutes", "3", "--seed", "1", "--out", str(tmp_path))
    assert found[plant]["found_at"] is not None

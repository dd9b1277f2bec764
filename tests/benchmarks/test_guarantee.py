"""The promise, held against recorded outcomes: the fast form of benchmarks/guarantee.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.guarantee import EPSILON, measure
from gnothi.calibration.compare import read
from tests.benchmarks.test_programs import run

DRAWS = 150


@pytest.mark.parametrize("signal", ["eigen_score", "perplexity", "ln_entropy", "energy_score"])
@pytest.mark.parametrize(("name", "target"), [("nq", 0.5), ("trivia", 0.3), ("trivia", 0.2)])
def test_it_is_broken_no_more_often_than_promised(shared_data: Path, name: str, signal: str, target: float) -> None:
    replay = read(shared_data / "recorded" / f"{name}.test.jsonl")
    scores = next(one.values for one in replay.signals if one.name == signal)
    found = measure(name, signal, scores, replay.never < 1, target, DRAWS)
    assert found.kept
    assert found.slack < 2 * EPSILON
    assert found.held_out_significant <= found.slack
    assert 0 <= found.trusted <= 1 - found.refused + 1e-9


@pytest.mark.parametrize("signal", ["eigen_score", "perplexity"])
def test_what_no_threshold_keeps_is_refused(shared_data: Path, signal: str) -> None:
    """On NQ more than a quarter of even the surest answers are wrong: 250 questions cannot show 10 %."""
    replay = read(shared_data / "recorded" / "nq.test.jsonl")
    scores = next(one.values for one in replay.signals if one.name == signal)
    assert measure("nq", signal, scores, replay.never < 1, 0.1, DRAWS).refused >= 0.98


@pytest.mark.slow
def test_the_program(tmp_path: Path) -> None:
    lines = [
        {
            "question": f"{number}?",
            "answers": ["a"],
            "no_retrieval": "a" if number % 3 else "b",
            "one_retrieval": "a",
            "direct": {"gram": 1.0 if number % 3 else 2.0},
        }
        for number in range(90)
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = run("benchmarks.guarantee", str(tmp_path / "some.jsonl"), "--draws", "20", "--targets", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["signal"], found["kept"], found["drawn"]) == ("gram", True, 0)
    asked = ("--targets", "0.2", "--needed", "20", "--draws", "20")
    (advised,) = json.loads(run("benchmarks.guarantee", str(tmp_path / "some.jsonl"), *asked, "--json").stdout)
    assert 0 < advised["advised"] <= advised["refused"] < 1
    assert advised["needed"] >= 14  # (1 - 0.2)^11 <= 0.1, and a fifth is set aside
    assert 0 <= advised["least_granted"] <= advised["granted"] <= advised["most_granted"] <= 1
    assert "20 draws each" in run("benchmarks.guarantee", str(tmp_path / "some.jsonl"), "--draws", "20").stdout

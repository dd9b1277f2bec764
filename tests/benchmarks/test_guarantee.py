"""The promise, held against recorded outcomes: the fast form of benchmarks/guarantee.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.guarantee import EPSILON, Outcome, measure
from gnothi.calibration.compare import read
from tests.benchmarks.conftest import Program
from tests.cases import each

DRAWS = 150


SIGNALS = ("eigen_score", "perplexity", "ln_entropy", "energy_score")


def measured(data: Path, name: str, signal: str, target: float) -> Outcome:
    replay = read(data / "recorded" / f"{name}.test.jsonl")
    scores = next(one.values for one in replay.signals if one.name == signal)
    return measure(name, signal, scores, replay.never < 1, target, DRAWS)


def broken_no_more_often_than_promised(data: Path, name: str, signal: str, target: float) -> None:
    found = measured(data, name, signal, target)
    assert found.within_slack
    assert found.slack < 2 * EPSILON
    assert found.held_out_significant <= found.slack
    assert 0 <= found.trusted <= 1 - found.refused + 1e-9


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("target", [0.5, 0.3, 0.2])
def test_it_is_broken_no_more_often_than_promised(made_data: Path, signal: str, target: float) -> None:
    broken_no_more_often_than_promised(made_data, "nq", signal, target)


def test_it_is_given_where_a_signal_tells_and_not_where_none_does(made_data: Path) -> None:
    """Memory is wrong on 40%, and a signal that tells nothing promises 0.3 by chance alone."""
    assert measured(made_data, "nq", "perplexity", 0.3).refused < 0.1
    assert measured(made_data, "nq", "ln_entropy", 0.3).refused > 0.9


def test_it_is_broken_no_more_often_than_promised_on_real_outcomes(shared_data: Path) -> None:
    targets = (("nq", 0.5), ("trivia", 0.3), ("trivia", 0.2))
    each(broken_no_more_often_than_promised, [(shared_data, name, one, target) for name, target in targets for one in SIGNALS])


def test_what_no_threshold_keeps_is_refused(shared_data: Path) -> None:
    """On NQ more than a quarter of even the surest answers are wrong: 250 questions cannot show 10%."""

    def refused(signal: str) -> None:
        assert measured(shared_data, "nq", signal, 0.1).refused >= 0.98

    each(refused, [("eigen_score",), ("perplexity",)])


@pytest.mark.slow
def test_the_program(program: Program, tmp_path: Path) -> None:
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
    done = program("benchmarks.guarantee", str(tmp_path / "some.jsonl"), "--draws", "20", "--targets", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["signal"], found["kept"], found["drawn"]) == ("gram", True, 0)
    asked = ("--targets", "0.2", "--needed", "20", "--draws", "20")
    (advised,) = json.loads(program("benchmarks.guarantee", str(tmp_path / "some.jsonl"), *asked, "--json").stdout)
    assert 0 < advised["advised"] <= advised["refused"] < 1
    assert advised["needed"] >= 14  # (1 - 0.2)^11 <= 0.1, and a fifth is set aside
    assert 0 <= advised["least_granted"] <= advised["granted"] <= advised["most_granted"] <= 1
    assert "20 draws each" in program("benchmarks.guarantee", str(tmp_path / "some.jsonl"), "--draws", "20").stdout

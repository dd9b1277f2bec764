"""What people said of answers, as a file, and what a threshold may be chosen from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gnothi as interface
from gnothi.calibration.feedback import Judged, from_feedback, read
from gnothi.calibration.file import read as read_calibration
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.models.identity import Identity
from gnothi.runs.journal import as_line
from tests.command_line import Run
from tests.messages import refused

ONE = Judged(
    answer_id="0",
    time="2026-11-23T00:00:00+00:00",
    setup="gnothi/seakr",
    method="seakr",
    model=Identity("lab", "abc"),
    right=True,
    trusted=True,
    signal="gram",
    score=0.5,
    threshold=1.0,
    settings={"signal.samples": 20, "signal.layer": None, "form": "simple"},
    precision="float32",
)


def write(path: Path, lines: Iterable[Judged]) -> Path:
    path.write_text("".join(as_line(one.as_dict()) for one in lines), encoding="utf-8")
    return path


def judged(n: int, threshold: float = 1.0, seed: int = 0, start: int = 0) -> list[Judged]:
    """Memory is wrong more often where the score is high; above the threshold it was searched."""
    random = np.random.default_rng(seed)
    scores = random.random(n) * 1.5
    return [
        replace(
            ONE,
            answer_id=str(start + place),
            score=float(score),
            threshold=threshold,
            trusted=bool(score <= threshold),
            right=bool(random.random() > 0.5 * max(score - 0.3, 0) if score <= threshold else random.random() > 0.2),
        )
        for place, score in enumerate(scores)
    ]


def test_a_gate_that_stopped_drawing_says_nothing_of_lower_thresholds(tmp_path: Path) -> None:
    early = {**(ONE.settings or {}), "signal.stopping": "4: 0.8 1.2 0.0"}
    with refused(InvalidInput):
        from_feedback(write(tmp_path / "f.jsonl", [replace(one, settings=early) for one in judged(200)]))


@given(
    st.floats(allow_nan=False) | st.none(),
    st.floats(allow_nan=False) | st.none(),
    st.booleans(),
    st.text(),
    st.none() | st.text(),
)
def test_what_is_written_is_read_again(
    score: float | None, threshold: float | None, right: bool, setup: str, text: str | None
) -> None:
    from tempfile import TemporaryDirectory

    one = replace(ONE, score=score or 0.0, threshold=threshold, right=right, setup=setup, answer=text)
    without = replace(ONE, answer_id="1", signal=None, score=None, threshold=None, settings=None, trusted=False)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        path.write_bytes("".join(as_line(each.as_dict()) for each in (one, without)).encode("utf-8", "replace"))
        found = read(path)
    assert (found[0].score, found[0].threshold, found[0].right) == (one.score, threshold, right)
    assert found[1] == without


def test_the_last_word_about_an_answer_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "f", [ONE, replace(ONE, answer_id="1"), replace(ONE, right=False)])
    with path.open("a") as file:
        file.write('{"version": 1, "answer_id": "2", torn')
    assert [(one.answer_id, one.right) for one in read(path)] == [("1", True), ("0", False)]


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"right": "yes"}, {"trusted": None}, {"score": "high"}, {"model": "lab"}, {"answer_id": ...}]
)
def test_a_line_that_is_none_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    line = {key: value for key, value in (ONE.as_dict() | change).items() if value is not ...}
    path = tmp_path / "f"
    path.write_text(as_line(ONE.as_dict()) + json.dumps(line) + "\n")
    with refused(InvalidInput):
        read(path)


def test_a_threshold_of_what_was_trusted(tmp_path: Path) -> None:
    path = write(tmp_path / "f", judged(600))
    source = from_feedback(path)
    trusted = [one for one in read(path) if one.trusted]
    assert (len(source.sample.scores), source.sample.always, source.judged) == (len(trusted), None, True)
    assert (source.method, source.signal, source.identity) == ("seakr", "gram", Identity("lab", "abc"))
    assert source.settings == {"signal.samples": 20, "signal.layer": None, "form": "simple"}
    what, whom = source.warnings
    assert f"{len(trusted)} count" in what
    assert "the threshold can stay or go down" in what
    assert f"{600 - len(trusted)} came after a search" in what
    assert "chose to judge" in whom


def test_never_above_the_threshold_of_the_day(tmp_path: Path) -> None:
    """Under a lower threshold, answers between the two were searched: those below are not all that the higher one would let
    through. Under a higher one they are."""
    low, high, now = judged(300, 0.5), judged(300, 1.4, 1, 300), judged(300, 1.0, 2, 600)
    source = from_feedback(write(tmp_path / "f", [*low, *high, *now]))
    expected = sorted(one.score or 0 for one in [*high, *now] if (one.score or 0) <= 1.0)
    assert sorted(source.sample.scores) == expected


def test_an_open_gate_judges_everything_and_one_that_always_searches_nothing(tmp_path: Path) -> None:
    shut = [replace(one, threshold=math.inf, trusted=True) for one in judged(100)]
    assert len(from_feedback(write(tmp_path / "f", shut)).sample.scores) == 100
    always = [replace(one, threshold=None, trusted=False) for one in judged(100)]
    with refused(InvalidInput):
        from_feedback(write(tmp_path / "f", always))


def test_other_settings_are_another_gate(tmp_path: Path) -> None:
    before = [replace(one, settings={"signal.samples": 4}) for one in judged(300)]
    with refused(InvalidInput):
        from_feedback(write(tmp_path / "f", [*before, replace(ONE, answer_id="last")]))


def test_one_of_several_gates_is_named(tmp_path: Path) -> None:
    others = [replace(one, method="compose", answer_id=f"c{one.answer_id}") for one in judged(300, seed=3)]
    path = write(tmp_path / "f", [*judged(300), *others])
    with refused(InvalidSetting):
        from_feedback(path)
    assert from_feedback(path, method="seakr").method == "seakr"
    with refused(InvalidInput):
        from_feedback(path, signal="rind")
    with refused(InvalidInput):
        from_feedback(tmp_path / "none")


def test_by_command_and_from_python(gnothi: Run, tmp_path: Path) -> None:
    path, out = write(tmp_path / "f.jsonl", judged(600)), tmp_path / "made.toml"
    code, shown, err = gnothi("calibrate", "--feedback", str(path), "--target-error", "0.2", "--out", str(out))
    assert code == 0, err
    assert "chose to judge" in err
    assert "at most 20.0% of the answers given without retrieval" in " ".join(shown.split())
    made = read_calibration(out)
    assert made.threshold <= 1.0
    assert (made.metric, made.model, made.scores) == ("feedback", Identity("lab", "abc"), ())
    same = interface.calibrate(None, feedback=path, target_error=0.2)
    assert same.threshold == made.threshold


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs --target-error"),
        (("--target-error", "0.2", "--search-cost", "0.1"), "no --search-cost"),
        (("--target-error", "0.2", "--metric", "em"), "people said which answers are right"),
        (("--target-error", "0.2", "--limit", "5"), "--limit: got it with feedback"),
        (("--target-error", "0.001"), "cannot guarantee an error of at most 0.001"),
        (("lab", "--target-error", "0.2"), "expected either DATASET or --feedback"),
    ],
)
def test_what_it_cannot_tell(gnothi: Run, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    path, out = write(tmp_path / "f.jsonl", judged(300)), tmp_path / "made.toml"
    code, _, err = gnothi("calibrate", "--feedback", str(path), *arguments, "--out", str(out))
    assert (code, out.exists()) == (2, False)
    assert said in " ".join(err.split())

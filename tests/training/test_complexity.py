from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, UnknownName
from gnothi.filtering.complexity import Labelled, open_complexity
from gnothi.metrics import METRICS
from gnothi.runs.rows import Row
from gnothi.training.complexity import Learnt, label, train
from tests.messages import refused
from tests.report.rows import FREE, run_of

METHODS = ("cot", "rag", "ircot")


def rows(outcomes: dict[str, tuple[int, int, int]]) -> list[Row]:
    """Question → whether memory, one retrieval, steps were right. Its first word is the kind."""
    return [
        Row(
            method,
            f"q{text}",
            text,
            "answer",
            ("gold",),
            kind=text.split()[0],
            metrics=dict.fromkeys(METRICS, float(right)),
            cost=FREE,
        )
        for text, triple in outcomes.items()
        for method, right in zip(METHODS, triple, strict=True)
    ]


OUTCOMES = {
    "one A": (1, 1, 1),
    "one B": (0, 1, 1),
    "two C": (0, 0, 1),
    "one D": (0, 0, 0),
    "two E": (0, 0, 0),
    "two F": (1, 0, 0),
}


def test_the_simplest_strategy_that_is_right_labels_the_question() -> None:
    failed = [
        Row("cot", "q9", "nine", "a", ("g",), metrics={"em": 1.0}),
        Row("rag", "q9", "nine", error={"type": "E", "message": ""}),
    ]
    by_outcome, by_kind, left_out = label([*rows(OUTCOMES), *failed], METHODS, None)
    expected = [Labelled("one A", "none"), Labelled("one B", "once"), Labelled("two C", "steps"), Labelled("two F", "none")]
    assert (by_outcome, by_kind, left_out) == (expected, [], 2)


def test_else_its_kind_does() -> None:
    by_outcome, by_kind, left_out = label(rows(OUTCOMES), METHODS, ("two",))
    assert (len(by_outcome), left_out) == (4, 0)
    assert by_kind == [Labelled("one D", "once"), Labelled("two E", "steps")]


def test_a_run_becomes_a_classifier(tmp_path: Path) -> None:
    made = rows({f"one {n}": (0, 1, 0) for n in range(10)} | {f"two {n}": (0, 0, 1) for n in range(5)})
    run_of(tmp_path / "run", made)
    learnt = train(tmp_path / "run", tmp_path / "out", METHODS, None)
    assert learnt.labels == {"none": 0, "once": 10, "steps": 5}
    assert learnt.accuracy == 1.0
    assert learnt.majority == pytest.approx(2 / 3)
    assert open_complexity(tmp_path / "out").predict(["two 77"])[0].strategy == "steps"
    with refused(InvalidInput):
        train(tmp_path / "run", tmp_path / "out", ("direct", "rag", "ircot"), None)


def test_a_classifier_that_tells_nothing_says_so() -> None:
    labels = {"none": 3, "once": 2, "steps": 0}
    assert "The wording of 5 questions tells nothing" in str(Learnt(labels, 0, 15, 0.6, 0.6).report())
    assert "tells nothing" not in str(Learnt(labels, 0, 15, 0.8, 0.6).report())
    assert "calls 2 answers wrong" in str(Learnt(labels, 0, 15, 0.8, 0.6, overlooked=2).report())


def test_a_kind_that_no_question_is_of_is_refused(tmp_path: Path) -> None:
    made = rows({f"one {n}": (0, 1, 0) for n in range(3)} | {f"two {n}": (0, 0, n % 2) for n in range(4)})
    run_of(tmp_path / "run", made)
    assert train(tmp_path / "run", tmp_path / "out", METHODS, ("two",)).by_kind == 2
    with refused(UnknownName):
        train(tmp_path / "run", tmp_path / "other", METHODS, ("one", "twoo"))
    assert not (tmp_path / "other").exists()

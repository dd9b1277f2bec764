from __future__ import annotations

from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.runs.rows import Row
from gnothi.training import complexity
from gnothi.training import knowledge_reference as reference
from gnothi.training.outcomes import hint, overlooked, rights
from tests.messages import refused
from tests.report.rows import FREE, run_of

HELD, RIGHT, WRONG = (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)
"""Exact match and accuracy of an answer that holds a gold answer, is one, or does neither."""


def row(method: str, question: str, outcome: tuple[float, float]) -> Row:
    em, accuracy = outcome
    return Row(method, question, question, "answer", ("gold",), metrics={"em": em, "f1": em, "accuracy": accuracy}, cost=FREE)


ROWS = [row("direct", "q1", HELD), row("rag", "q1", RIGHT), row("rag", "q2", WRONG), row("cot", "q1", HELD)]
FAILED = Row("rag", "q3", "q3", error={"type": "E", "message": ""})


def test_what_is_right_depends_on_the_metric() -> None:
    found = rights([*ROWS, FAILED], "accuracy")
    assert found == {("direct", "q1"): True, ("rag", "q1"): True, ("rag", "q2"): False, ("cot", "q1"): True}
    assert not rights(ROWS)["direct", "q1"]


def test_answers_that_exact_match_does_not_see_are_counted() -> None:
    assert overlooked([*ROWS, FAILED], ("direct", "rag"), "em") == 1
    assert overlooked(ROWS, ("direct", "rag"), "accuracy") == 0
    assert hint(0) == ""
    assert "calls 1 answer wrong" in hint(1)


def sentences(*methods: str) -> list[Row]:
    """Four questions of which the first two are known, but answered in sentences: exact match sees the answers of the last
    method alone."""
    return [
        row(method, f"{kind} {number}", (RIGHT if method == methods[-1] else HELD) if known or method != methods[0] else WRONG)
        for kind, known in (("old", True), ("new", False))
        for number in (1, 2)
        for method in methods
    ]


def test_a_classifier_of_sentences_learns_by_accuracy(tmp_path: Path) -> None:
    methods = ("cot", "rag", "ircot")
    run = run_of(tmp_path / "run", sentences(*methods))
    with refused(InvalidInput):
        complexity.train(run, tmp_path / "out", methods)
    learnt = complexity.train(run, tmp_path / "out", methods, metric="accuracy")
    assert (learnt.labels, learnt.overlooked) == ({"none": 2, "once": 2, "steps": 0}, 0)


def test_a_reference_of_sentences_learns_by_accuracy(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", sentences("direct", "rag"))
    with refused(InvalidInput):
        reference.train(run, tmp_path / "out")
    counts = reference.train(run, tmp_path / "out", labels="right", metric="accuracy")
    assert (counts.known, counts.unknown, counts.undecided) == (2, 2, 0)

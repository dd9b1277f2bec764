"""Answers that are none are counted by kind; right ones never."""

from __future__ import annotations

import pytest

from benchmarks.by_defaults import demonstrated, odd
from gnothi.runs.rows import Row


@pytest.mark.parametrize(
    ("answer", "right", "kind"),
    [
        (" ...", False, "punctuation"),
        ("the Ulm", False, "example"),
        ("The Ulm.", True, None),
        ("Ada Lovelace", False, "question"),
        ("Lovelace", False, "question"),
        ("love", False, None),
        ("a poet", False, None),
        ("", False, None),
        (None, False, None),
    ],
)
def test_odd_answers(answer: str | None, right: bool, kind: str | None) -> None:
    row = Row("rag", "q", "What is Ada Lovelace's occupation?", answer, metrics={"accuracy": float(right)})
    assert [name for name, count in odd([row], demonstrated()).items() if count] == ([kind] if kind else [])


def test_short_answers_of_worked_examples() -> None:
    assert {"ulm", "odile varr", "france", "no"} <= demonstrated()

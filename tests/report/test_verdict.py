"""The sentences that a report opens with."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.report.summary import summarise
from gnothi.report.verdict import verdict
from gnothi.runs.rows import Row
from tests.report.rows import row


def _said(*rows: Sequence[Row]) -> str:
    return " ".join(verdict(summarise([one for some in rows for one in some], "lab")))


def _rows(method: str, right: int, searched: int = 0, gate: bool = False, of: int = 100) -> list[Row]:
    return [
        row(method, n, right=n < right, retrieved=n < searched, uncertainty=(1.0 if n < searched else 0.0) if gate else None)
        for n in range(of)
    ]


def test_one_method() -> None:
    assert _said(_rows("rag", 50, 100)) == "rag is right in 50% of 100 questions (exact match, 95 % interval .40-.60)."


def test_better_than_all_or_maybe_by_chance() -> None:
    assert "rag is right in 90% of 100 questions" in (clear := _said(_rows("rag", 90, 100), _rows("direct", 10)))
    assert clear.endswith("more than every other method.")
    assert "the most; beside direct that may be chance." in _said(_rows("rag", 51, 100), _rows("direct", 50))


def test_what_a_gate_saves() -> None:
    ends = _rows("rag", 80, 100), _rows("direct", 20)
    said = _said(*ends, _rows("seakr", 70, 40, gate=True))
    assert (
        "seakr searches for 40% of the questions. It is right in 70%, against 80% by always searching (rag) and 20% by" in said
    )
    assert "searches for (almost) every question: its gate decides nothing" in _said(*ends, _rows("seakr", 70, 100, gate=True))
    assert "searches for (almost) no question: its gate decides nothing" in _said(*ends, _rows("seakr", 20, 0, gate=True))


def test_sentences_are_judged_by_what_occurs_in_them() -> None:
    rows = [row("direct", n, answer="The answer is gold." if n < 30 else "It is not known.") for n in range(100)]
    said = _said(rows)
    assert "direct is right in 30% of 100 questions (accuracy" in said
    assert said.endswith("Read the warning below before you rely on these numbers.")


def test_without_gold_answers_nothing_is_right_or_wrong() -> None:
    bare = [Row("rag", f"q{n}", "Q?", "yes", cost=row("rag", n).cost) for n in range(3)]
    assert _said(bare).startswith("No question has a gold answer")

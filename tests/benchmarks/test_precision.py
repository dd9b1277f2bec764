"""Signals of two precisions beside each other."""

from __future__ import annotations

from benchmarks.precision import page
from gnothi.runs.rows import Row


def row(n: int, score: float | None, right: bool, answer: str) -> Row:
    return Row("panel", str(n), "Q?", answer, metrics={"em": float(right)}, signals={"gram": {"score": score}})


def test_what_moves_is_counted() -> None:
    first = [row(n, n / 10, n < 5, "a") for n in range(10)]
    second = [row(n, 9.0 if n == 0 else n / 10, n < 5, "b" if n == 0 else "a") for n in range(10)]
    told = page(list(zip(first, second, strict=True)), "em")
    assert told[0] == "10 questions, 9 with the same answer."
    cells = [cell.strip() for cell in told[-1].split("|")]
    assert cells[1:5] == ["gram", "1.0000", "0.8000", "-0.2000"]
    assert cells[8] == "10.0%"


def test_what_could_not_be_measured_is_most_uncertain() -> None:
    pairs = [(one, one) for one in (row(0, 0.1, True, "a"), row(1, None, False, "b"), row(2, 0.2, True, "c"))]
    assert "| gram | 1.0000 | 1.0000 | +0.0000 |" in page(pairs, "em")[-1]

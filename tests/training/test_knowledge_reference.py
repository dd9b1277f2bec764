from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, ModelUnavailable
from gnothi.filtering.knowledge import Experience, open_knowledge
from gnothi.metrics import METRICS
from gnothi.runs.rows import Row
from gnothi.training.knowledge_reference import Counts, experiences, train
from tests.messages import refused
from tests.report.rows import FREE, run_of


def rows(outcomes: list[tuple[int, int]]) -> list[Row]:
    """(right from memory, right with retrieval) of questions 0, 1, ..."""
    return [
        Row(
            method,
            f"q{number}",
            f"What is {number}?",
            "answer",
            ("gold",),
            metrics=dict.fromkeys(METRICS, float(right)),
            cost=FREE,
        )
        for number, pair in enumerate(outcomes)
        for method, right in zip(("direct", "rag"), pair, strict=True)
    ]


OUTCOMES = [(1, 1), (0, 1), (1, 0), (0, 0)]


def test_known_from_memory_or_by_retrieval_alone() -> None:
    failed = Row("rag", "q9", "What is 9?", error={"type": "E", "message": "m"})
    ninth = Row("direct", "q9", "What is 9?", "answer", ("gold",), metrics={"em": 1.0})
    made = [*rows(OUTCOMES), failed, ninth]
    better = [Experience("What is 1?", False), Experience("What is 2?", True)]
    assert experiences(made, "direct", "rag") == better
    assert experiences(made, "direct", "rag", "right") == [Experience("What is 0?", True), *better]


async def test_a_run_becomes_a_reference(tmp_path: Path) -> None:
    assert train(run_of(tmp_path / "run", rows(OUTCOMES)), tmp_path / "known") == Counts(1, 1, 2)
    found = await open_knowledge(tmp_path / "known").neighbours("What is 1?", 1)
    assert (found.known, found.unknown) == (0, 1)
    assert found.stored == (1, 1, 2)


def test_what_is_refused(tmp_path: Path) -> None:
    made = run_of(tmp_path / "run", rows(OUTCOMES))
    with refused(InvalidInput):
        train(made, tmp_path / "known", memory="cot")
    with refused(InvalidInput):
        train(run_of(tmp_path / "known", rows([(1, 1), (0, 0)])), tmp_path / "out")
    with refused(InvalidInput):
        train(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(ModelUnavailable):
        train(made, tmp_path / "out", encoder="/absent")
    assert not (tmp_path / "out").exists()

"""Calls and tokens as the papers count them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.events import Event, ModelCall, Searched
from gnothi.reproduce.counting import Unit, calls, counts_of, tokens
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row


def call(operation: str, task: str, *texts: str) -> ModelCall:
    return ModelCall("m", operation, task, 9, 9, 0.1, texts)


# A measurement, three tries, a judge's word, a passage that is graded.
ASKED: list[Event] = [
    call("generate", "reason", "So."),
    call("sample", "reason", *"ab"),
    Searched("Who?", (), 0.1),
    call("sample", "answer", *"abc"),
    call("generate", "equivalent", "Yes"),
    call("score", "useful", "Yes", "No"),
]


@pytest.mark.parametrize(("counted", "number"), [("contexts", 2), ("replies", 6)])
def test_calls_of_one_question(counted: Unit, number: int) -> None:
    assert calls([one.as_dict() for one in ASKED], counted) == number


@pytest.mark.parametrize(("counted", "number"), [("contexts", 5 * 18), ("replies", 3 * 18)])
def test_tokens_of_one_question(counted: Unit, number: int) -> None:
    assert tokens([one.as_dict() for one in ASKED], counted) == number


def test_counts_of_a_run(tmp_path: Path) -> None:
    rows = [Row("seakr", name, "Who?", "a") for name in ("one", "two")]
    failed = Row("seakr", "three", "Who?", error={"type": "E", "message": "m"})
    with RunFolder(tmp_path / "run", {}) as opened:
        for row, seen in zip([*rows, failed], (ASKED, ASKED[:1], ASKED), strict=True):
            opened.append(row, [one.as_dict() for one in seen])
        opened.finish([row.key for row in (*rows, failed)])
    assert counts_of(tmp_path / "run", [*rows, failed], "paper_calls", "contexts") == [2, 1]
    assert counts_of(tmp_path / "run", [*rows, failed], "paper_tokens", "replies") == [54, 18]

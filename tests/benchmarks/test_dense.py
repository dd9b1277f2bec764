"""Recall of a ranking, against titles counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks import dense
from gnothi.types import Passage, ScoredPassage


def found(*titles: str) -> Sequence[ScoredPassage]:
    return [ScoredPassage(Passage(f"{place} {title}", "", title), -place) for place, title in enumerate(titles)]


def test_the_share_of_what_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    def question(*titles: str) -> dict[str, Any]:
        return {"passages": [{"title": one, "supporting": one.isupper()} for one in titles]}

    monkeypatch.setattr(dense, "_questions", lambda _: [question("A", "B", "c"), question("A", "x")])
    given = [found("c", "A", "x", "y", "z", "B"), found("x", "x")]
    assert dense._recalls(given, "any") == {"recall_at_5": 0.25, "recall_at_10": 0.5}
    assert dense._same_first(given, [found("c"), found("y")]) == 0.5

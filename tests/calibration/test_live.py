from __future__ import annotations

import math

import pytest

from gnothi.calibration.live import Gated, gated, trusted
from gnothi.events import Decided, Drafted, Event, Searched


def decided(score: float | None, verdict: str, signal: str = "gram", threshold: float | None = 1.0) -> Decided:
    return Decided("retrieve", signal, score, threshold, verdict)


SEARCH = Searched("q", (), 0.1)


@pytest.mark.parametrize(
    ("events", "found", "from_memory"),
    [
        ([Drafted("x", 0.5), decided(0.5, "trust")], Gated("gram", 0.5, 1.0, False, False), True),
        ([decided(0.12345678, "trust")], Gated("gram", 0.1235, 1.0, False, False), True),
        ([decided(0.5, "trust"), decided(0.7, "trust")], Gated("gram", 0.7, 1.0, False, True), True),
        ([decided(2.0, "retrieve"), SEARCH], Gated("gram", 2.0, 1.0, True, False), False),
        # What is said after the first search is no longer from memory.
        (
            [decided(0.5, "trust"), decided(2.0, "retrieve"), SEARCH, decided(9.0, "retrieve")],
            Gated("gram", 2.0, 1.0, True, True),
            False,
        ),
        ([decided(None, "retrieve"), SEARCH], Gated("gram", math.inf, 1.0, True, False), False),
        ([decided(0.2, "retrieve"), SEARCH], Gated("gram", math.inf, 1.0, True, False), False),  # a blank draft
        ([decided(0.2, "retrieve", threshold=None), SEARCH], Gated("gram", 0.2, None, True, False), False),
        ([SEARCH, decided(0.5, "trust")], Gated("gram", 0.5, 1.0, False, False), False),
        ([Decided("retrieve", "", None, None, "retrieve")], None, False),
        ([decided(0.5, "trust"), decided(0.5, "trust", "rind")], None, False),
        ([Decided("keep", "relevance", 1.0, 0.5, "keep")], None, False),
        ([], None, False),
    ],
)
def test_what_a_gate_said(events: list[Event], found: Gated | None, from_memory: bool) -> None:
    assert gated(events) == found
    assert trusted(events) is from_memory

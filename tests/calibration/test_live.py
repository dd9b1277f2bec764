"""What a gate said of one question that somebody asked, and whether live scores still look like those of the calibration."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from gnothi.calibration.file import Calibration, kept_scores
from gnothi.calibration.live import Drifting, Gated, gated, trusted
from gnothi.events import Decided, Drafted, Event, Searched
from gnothi.models.identity import Identity


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


def calibration(scores: Iterable[float]) -> Calibration:
    made = Calibration("seakr", "gram", 0.5, Identity("lab"), "some", 100, "em", "2026-11-23T00:00:00+00:00")
    return replace(made, scores=kept_scores(list(scores)))


def fed(drifting: Drifting, scores: Iterable[float], several: bool = False) -> Drifting:
    for score in scores:
        drifting.add(Gated("gram", score, 0.5, score > 0.5, several))
    return drifting


def test_like_questions_are_steady_and_others_drift() -> None:
    random = np.random.default_rng(1)
    drifting = Drifting(calibration(random.random(300)))
    assert (drifting.word, drifting.advice()[:24]) == ("collecting", "0 of 200 scores seen; th")
    assert fed(drifting, random.random(200)).word == "steady"
    fed(drifting, random.random(199) + 0.3)
    assert drifting.word == "steady"  # until the window is full
    fed(drifting, [0.9])
    assert (drifting.word, drifting.alarm) == ("drift", True)
    said = drifting.as_dict()
    assert said["state"] == "drift"
    assert "% are above the threshold, 4" in str(said["advice"])
    assert "gnothi calibrate QUESTIONS" in str(said["advice"])
    assert fed(drifting, random.random(200)).word == "steady"  # each window speaks for itself


def test_scores_after_several_decisions_compare_by_their_side_of_the_threshold() -> None:
    """From memory, the highest of several scores; live, the one that led to the first search: they share their side only."""
    random = np.random.default_rng(1)
    before = random.random(300)
    live = np.where(before[:200] > 0.5, 0.51, before[:200])
    assert fed(Drifting(calibration(before)), live).word == "drift"
    assert fed(Drifting(calibration(before)), live, several=True).word == "steady"
    assert fed(Drifting(calibration(before), early=True), live).word == "steady"
    assert fed(Drifting(calibration(before)), np.full(200, 0.51), several=True).word == "drift"


def test_nothing_to_compare_with() -> None:
    drifting = fed(Drifting(calibration([])), [0.1] * 300)
    assert (drifting.word, drifting.alarm, drifting.tested) == ("unknown", False, None)
    assert "keeps no scores" in drifting.advice()


def test_answers_without_this_gate_do_not_count() -> None:
    drifting = Drifting(calibration([0.1, 0.2]), window=1)
    drifting.add(None)
    drifting.add(Gated("rind", 0.1, 0.5, False, False))
    assert drifting.word == "collecting"


@pytest.mark.parametrize("n", [1, 7, 400, 401, 5000])
def test_what_is_kept_of_scores_stands_for_all(n: int) -> None:
    scores = np.random.default_rng(0).normal(size=n)
    few = np.array(kept_scores(scores))
    assert len(few) == min(n, 400)
    assert (np.diff(few) >= 0).all()
    gaps = [abs((few <= value).mean() - (scores <= value).mean()) for value in scores]
    assert max(gaps) <= 1 / 400 + 1e-9

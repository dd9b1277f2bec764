"""What a gate said of one question that somebody asked: the score that a calibration would have seen, and what came of it; and
whether live scores still look like those that a threshold was chosen on, and what to do where they do not.

Scores are tested in windows that do not overlap, so that looking often costs nothing: questions like those of the calibration
raise a false alarm in at most one of 1 / ``ALARM`` windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gnothi.events import Decided, Event, Usage
from gnothi.signals.gate import decisive
from gnothi.stats.reliability import Drift, drift


@dataclass(frozen=True, slots=True)
class Gated:
    """``score``: the highest up to the first search, in the digits that decide; infinite where the gate fired for another
    reason than a score (nothing measured, a blank draft). ``threshold`` None: it always fires. ``fired``: it asked for a
    search; ``several``: it was asked more than once, so that a score above the threshold need not be the
    highest one from memory."""

    signal: str
    score: float
    threshold: float | None
    fired: bool
    several: bool


def gated(events: Iterable[Event]) -> Gated | None:
    """None for an answer that no gate had a part in, or several gates of different signals."""
    decided = [event for event in events if isinstance(event, Decided) and event.kind == "retrieve" and event.signal]
    if len({event.signal for event in decided}) != 1:
        return None
    first = next((place for place, event in enumerate(decided) if event.verdict == "retrieve"), None)
    until_search = decided if first is None else decided[: first + 1]
    score = max(_score(event) for event in until_search)
    return Gated(decided[0].signal, score, until_search[-1].threshold, first is not None, len(decided) > 1)


def trusted(events: Iterable[Event]) -> bool:
    """Whether the answer is from memory: the gate did not fire, and nothing was searched."""
    everything = list(events)
    gate = gated(everything)
    return gate is not None and not gate.fired and not Usage.of(everything).retrievals


def _score(event: Decided) -> float:
    if event.score is None:
        return float("inf")
    score = decisive(event.score)
    under = event.threshold is not None and score <= event.threshold
    return float("inf") if event.verdict == "retrieve" and under else score


class Before(Protocol):
    """What live scores are compared with: a calibration, or a learnt gate."""

    @property
    def scores(self) -> Sequence[float]: ...
    @property
    def threshold(self) -> float: ...
    @property
    def signal(self) -> str: ...


CALIBRATE = (
    "Calibrate anew on questions like those that come now (`gnothi calibrate QUESTIONS`); where answers were judged, "
    "`gnothi calibrate --feedback FILE` tells what they support."
)
WINDOW = 200
"""Live scores a test takes."""
ALARM = 0.01


class Drifting:
    """The live scores of one set-up beside those of its calibration. ``early``: its gate may stop before its score is known
    exactly, so that only the side of the threshold compares. ``remedy``: what to do where they differ."""

    def __init__(self, calibration: Before, early: bool = False, window: int = WINDOW, remedy: str = CALIBRATE) -> None:
        self._remedy = remedy
        self._before = np.array(calibration.scores)
        self._threshold = calibration.threshold
        self._signal = calibration.signal
        self._early = early
        self._size = window
        self._window: list[Gated] = []
        self.tested: Drift | None = None
        self._above: tuple[float, float] = (0.0, 0.0)

    def add(self, gate: Gated | None) -> None:
        """One more answer; those of another signal do not count."""
        if gate is None or gate.signal != self._signal or not len(self._before):
            return
        self._window.append(gate)
        if len(self._window) == self._size:
            self.tested = self._test(self._window)
            self._window = []

    @property
    def alarm(self) -> bool:
        return self.tested is not None and self.tested.p < ALARM

    @property
    def word(self) -> str:
        """``unknown`` (the calibration keeps no scores), ``collecting``, ``steady`` or ``drift``."""
        if not len(self._before):
            return "unknown"
        return "collecting" if self.tested is None else "drift" if self.alarm else "steady"

    def advice(self) -> str:
        """What it means and what to do, in sentences."""
        if self.tested is None:
            if self.word == "unknown":
                return "The calibration keeps no scores to compare with: it was made from judged answers."
            return f"{len(self._window)} of {self._size} scores seen; the first test comes when all are there."
        then, now = self._above
        gap = f"distance {self.tested.distance:.2f}, p = {self.tested.p:.2g}"
        if not self.alarm:
            return f"The last {self._size} scores look like those of the calibration ({gap})."
        return (
            f"The last {self._size} scores do not look like those of the calibration ({gap}): {now:.0%} are above the "
            f"threshold, {then:.0%} were. Questions or model have changed, and a guarantee made then does not cover them. "
            f"{self._remedy}"
        )

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        tested = self.tested
        return {
            "state": self.word,
            "distance": None if tested is None else tested.distance,
            "p": None if tested is None else tested.p,
            "seen": len(self._window),
            "window": self._size,
            "advice": self.advice(),
        }

    def _test(self, window: Sequence[Gated]) -> Drift:
        above, now_above = self._before > self._threshold, np.array([gate.fired for gate in window])
        self._above = float(above.mean()), float(now_above.mean())
        if self._early or any(gate.several for gate in window):
            return drift(above, now_above)
        return drift(self._before, [gate.score for gate in window])

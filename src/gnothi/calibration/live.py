"""What a gate said of one question that somebody asked: the score that a calibration would have seen, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gnothi.events import Decided, Event, Usage
from gnothi.signals.gate import decisive


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
    seen = decided if first is None else decided[: first + 1]
    score = max(_score(event) for event in seen)
    return Gated(decided[0].signal, score, seen[-1].threshold, first is not None, len(decided) > 1)


def trusted(events: Iterable[Event]) -> bool:
    """Whether the answer is from memory: the gate did not fire, and nothing was searched."""
    seen = list(events)
    found = gated(seen)
    return found is not None and not found.fired and not Usage.of(seen).retrievals


def _score(event: Decided) -> float:
    if event.score is None:
        return float("inf")
    score = decisive(event.score)
    under = event.threshold is not None and score <= event.threshold
    return float("inf") if event.verdict == "retrieve" and under else score

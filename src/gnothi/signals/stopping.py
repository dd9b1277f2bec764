"""When drawing samples ends: a threshold needs a side, not a number.

A gate draws in groups. Behind every group but the last, the score of the samples so far is moved to where that of all lies,
and held against two margins around the threshold: up to the lower one the model knows, above the upper one it does not, and
between them the next group is drawn. The last one is held against the threshold itself. Margins are chosen with the threshold,
on questions with known answers (``calibration.stopping``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gnothi.errors import InvalidSetting

KEY = "signal.stopping"
"""The setting that holds a rule as text."""
COLLECTING = "collect"
"""In place of a rule: draw twice as many as are wanted, and keep the scores that a rule is chosen on."""
_FIFTHS = (1, 2, 3, 5)


def groups(samples: int) -> tuple[int, ...]:
    """How many are drawn in all behind each group: 4, 8, 12 and 20 of 20."""
    return tuple(dict.fromkeys(-(-samples * part // 5) for part in _FIFTHS))


class Step(NamedTuple):
    """Behind ``samples``: ``moved`` is added to their score; up to ``known`` it is low enough, above ``searched`` too high."""

    samples: int
    known: float
    searched: float
    moved: float = 0.0


@dataclass(frozen=True, slots=True)
class Stopping:
    """The steps before the last group; none of them with ``collecting``, where all is drawn, twice."""

    steps: tuple[Step, ...] = ()
    collecting: bool = False

    def __post_init__(self) -> None:
        counts = [0, *(step.samples for step in self.steps)]
        fine = all(step.known <= step.searched and math.isfinite(step.moved) for step in self.steps)
        if not fine or any(later <= before for before, later in pairwise(counts)):
            raise InvalidSetting(
                f"setting {KEY!r}: got {self}, expected rising numbers of samples, each with the score up to which the model "
                "knows, a higher one above which it does not, and a finite number to be added. `gnothi calibrate` writes it."
            )

    @property
    def fewest(self) -> int:
        """The fewest samples that a signal can have under this rule."""
        return self.steps[-1].samples + 1 if self.steps else 1

    def __str__(self) -> str:
        """As a setting and a calibration hold it: ``SAMPLES: KNOWN SEARCHED MOVED``, step by step."""
        if self.collecting:
            return COLLECTING
        return ", ".join(f"{one.samples}: {one.known!r} {one.searched!r} {one.moved!r}" for one in self.steps)


def parsed(text: str | None) -> Stopping | None:
    """The rule of a setting; None for None. Raises InvalidSetting."""
    if text is None or text == COLLECTING:
        return None if text is None else Stopping(collecting=True)
    steps = []
    for part in text.split(","):
        samples, _, numbers = part.partition(":")
        try:
            known, searched, moved = map(float, numbers.split())
            steps.append(Step(int(samples), known, searched, moved))
        except ValueError:
            raise InvalidSetting(
                f"setting {KEY!r}: got {part.strip()!r:.80}, expected SAMPLES: KNOWN SEARCHED MOVED, as in '4: -6.5 -5.5 0.3'. "
                "`gnothi calibrate --stop-early` writes it into a calibration."
            ) from None
    return Stopping(tuple(steps))

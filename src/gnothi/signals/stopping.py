"""When drawing samples ends: a threshold needs a side, and a comparison the least, not a number.

A gate draws in groups. Behind every group but the last, the score of the samples so far is moved to where that of all lies,
and held against two margins around the threshold: up to the lower one the model knows, above the upper one it does not, and
between them the next group is drawn. The last one is held against the threshold itself. Margins are chosen with the threshold,
on questions with known answers (``calibration.stopping``).

Scores that are compared with each other are drawn on together until the least lies far enough below the next one. One that is
compared with nothing is said with the answer, and no more is drawn for it than tells wrong answers as well as all samples do
(``calibration.comparisons``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

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


class Lead(NamedTuple):
    """Behind ``samples``: the least score stands when the next one is at least ``apart`` higher."""

    samples: int
    apart: float


@dataclass(frozen=True, slots=True)
class Stopping:
    """The steps before the last group, those of a comparison (``leads``), and how many samples are drawn for a score that is
    compared with nothing (``alone``; empty: all); none of them with ``collecting``, where all is drawn, twice."""

    steps: tuple[Step, ...] = ()
    leads: tuple[Lead, ...] = ()
    alone: tuple[int, ...] = ()
    collecting: bool = False

    def __post_init__(self) -> None:
        fine = all(step.known <= step.searched and math.isfinite(step.moved) for step in self.steps)
        fine &= all(lead.apart >= 0 for lead in self.leads) and len(self.alone) < 2
        rising = all(before < later for part in self._counts for before, later in pairwise((0, *part)))
        if not (fine and rising):
            raise _refused(str(self))

    @property
    def _counts(self) -> tuple[tuple[int, ...], ...]:
        steps, leads = (tuple(one.samples for one in part) for part in (self.steps, self.leads))
        return steps, leads, self.alone

    @property
    def compares(self) -> bool:
        """Whether it says anything of scores that are compared."""
        return self.collecting or bool(self.leads or self.alone)

    @property
    def fewest(self) -> int:
        """The fewest samples that a signal can have under this rule."""
        return max((count + 1 for part in self._counts for count in part), default=1)

    def __str__(self) -> str:
        """As a setting and a calibration hold it: ``SAMPLES: KNOWN SEARCHED MOVED``, step by step, of a comparison behind |
        ``SAMPLES: APART``, and behind another | ``SAMPLES`` of a score that is compared with nothing."""
        if self.collecting:
            return COLLECTING
        steps, leads = (
            ", ".join(f"{samples}: {' '.join(map(repr, rest))}" for samples, *rest in part) for part in (self.steps, self.leads)
        )
        return " | ".join((steps, leads, ", ".join(map(str, self.alone)))).rstrip(" |")


def parsed(text: str | None) -> Stopping | None:
    """The rule of a setting; None for None. Raises InvalidSetting."""
    if text is None or text == COLLECTING:
        return None if text is None else Stopping(collecting=True)
    steps, leads, alone, *more = *text.split("|"), "", ""
    if any(more) or not text.strip(" |"):
        raise _refused(text)
    try:
        parts = tuple(Step(*numbers) for numbers in _numbers(steps, 3))
        compared = tuple(Lead(*numbers) for numbers in _numbers(leads, 1))
        return Stopping(parts, compared, tuple(n for (n,) in _numbers(alone, 0)))
    except ValueError:
        raise _refused(text) from None


def _numbers(text: str, count: int) -> Iterator[tuple[Any, ...]]:
    """Of each part a number of samples and ``count`` others. Raises ValueError."""
    for part in text.split(",") if text.strip() else ():
        samples, _, numbers = part.partition(":")
        values = int(samples), *map(float, numbers.split())
        if len(values) != count + 1:
            raise ValueError(part)
        yield values


def _refused(text: str) -> InvalidSetting:
    return InvalidSetting(
        f"setting {KEY!r}: got {text.strip()!r:.80}, expected a rule that `gnothi calibrate --stop-early` wrote. Leave the "
        "setting out, or use the calibration: <--calibration FILE>."
    )

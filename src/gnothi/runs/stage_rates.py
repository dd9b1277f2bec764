"""The search and the reader told apart: how often the answer was found, read and said, and where it was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gnothi.runs.answer_stages import READ, STAGES
from gnothi.runs.rows import Row
from gnothi.stats.intervals import Interval, mean, mean_interval


@dataclass(frozen=True, slots=True)
class Reached:
    """``found``, ``read``, ``answered``: shares of the ``n`` questions of which all three are known; ``stages``: how many of
    all questions came how far, every stage of ``runs.answer_stages.STAGES`` included."""

    n: int
    found: float | None
    found_interval: Interval | None
    read: float | None
    read_interval: Interval | None
    answered: float | None
    answered_interval: Interval | None
    stages: Mapping[str, int]


def reached(rows: Sequence[Row]) -> Reached | None:
    """None where no row says how far it came, as in runs of before."""
    staged = [row for row in rows if row.stage]
    if not staged:
        return None
    known = [row.reached for row in staged if row.reached["found"] is not None and row.reached["read"] is not None]
    found, read = ([float(one[key]) for one in known] for key in ("found", "read"))
    answered = [float(one["stage"].startswith(READ)) for one in known]
    counts = Counter(row.stage for row in staged)
    return Reached(
        n=len(known),
        found=mean(found),
        found_interval=mean_interval(found),
        read=mean(read),
        read_interval=mean_interval(read),
        answered=mean(answered),
        answered_interval=mean_interval(answered),
        stages={stage: counts[stage] for stage in STAGES},
    )

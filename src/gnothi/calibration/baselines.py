"""The two ends that a gate stands between: which method of a run never retrieves, and which always does. One rule for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gnothi.errors import InvalidSetting
from gnothi.roles import ALWAYS, AT_ONCE, REASONING, STAGES
from gnothi.runs.rows import Row

ByMethod = Mapping[str, Sequence[Row]]


def closed_book(by_method: ByMethod, trusting: Collection[str] = ()) -> list[str]:
    """The methods that answer from memory, the one that stands for never retrieving first.

    First those that measured: answers beside which every signal was measured, and those of a method whose gate was told never
    to fire (``trusting``). Then the one that reasons, and the one that answers at once last: gated methods reason, and short
    answers to composed questions fail for want of reasoning as well as of knowledge.
    """
    measured = [name for name, rows in by_method.items() if gauged(rows)]
    trusting_methods = [name for name in by_method if name in trusting]
    return list(dict.fromkeys([*measured, *trusting_methods, *(name for name in (REASONING, AT_ONCE) if name in by_method)]))


def never_of(by_method: ByMethod, trusting: Collection[str] = ()) -> str | None:
    """The method whose answers stand for never retrieving; None where the run holds none."""
    return next(iter(closed_book(by_method, trusting)), None)


def always_of(by_method: ByMethod) -> str | None:
    """The method whose answers stand for always retrieving; None where the run holds none."""
    recording = next((STAGES for row in by_method.get(STAGES, ()) if row.signals), None)
    return ALWAYS if ALWAYS in by_method else recording


def require_two(never: str, always: str) -> None:
    """Raise InvalidSetting where both ends are the same: every gate between them is worth as much, and there is no gap."""
    if never == always:
        raise InvalidSetting(
            f"<--never> and <--always>: got {never!r} for both, expected two ways of answering that a gate stands between. "
            "Name another one with <--never> or <--always>."
        )


def gauged(rows: Sequence[Row]) -> bool:
    """Whether a method measured signals beside answers from memory."""
    return any(row.signals for row in rows) and not any(row.retrieved for row in rows if not row.failed)

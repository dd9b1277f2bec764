"""Time that a question waits in queues, told apart from the time in which it is worked on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Span = tuple[float, float]
"""Beginning and end, by ``time.perf_counter``."""
Calls = list[tuple[float, float, float]]
"""When each call was made, when work on it began, and when it was done."""

_calls: ContextVar[Calls | None] = ContextVar("gnothi_calls_waited_for", default=None)


def waited(called: float, begun: float | None, done: float) -> None:
    """Tell the ``working`` further out of a call; ``begun`` is None where nobody took it up."""
    if (calls := _calls.get()) is not None:
        calls.append((called, done if begun is None else begun, done))


@contextmanager
def working() -> Iterator[Callable[[], float]]:
    """The function it gives tells the seconds since, without those in which calls stood in queues and none was worked on."""
    start, calls = time.perf_counter(), Calls()
    token = _calls.set(calls)
    try:
        yield lambda: time.perf_counter() - start - queued(calls)
    finally:
        _calls.reset(token)


def queued(calls: Calls) -> float:
    """Seconds in which at least one of the calls stood in a queue and none was worked on."""
    worked = _joined((begun, done) for _, begun, done in calls)
    either = _joined([*((called, begun) for called, begun, _ in calls), *worked])
    return sum(end - start for start, end in either) - sum(end - start for start, end in worked)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The same stretches of time, none overlapping another."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined

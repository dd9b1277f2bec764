"""Seconds that are a program's own, where cores are shared: what it spent of one, and how long it waited for one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PROC = Path("/proc")
_PAUSE = 0.05
"""Seconds between looks, which themselves cost time of a core."""
_TICKS = 100
"""Of a second, in which Linux tells what a process has spent."""


def spent(pid: int) -> float:
    """Seconds of processors that the process and its children took, those that have ended included."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (_PROC / str(one) / "stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def family(pid: int) -> Iterator[int]:
    """The process and those that descend from it."""
    yield pid
    with contextlib.suppress(OSError, ValueError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield from family(child)


class Own:
    """A clock of one program from now on, which stands while the program waits for a core."""

    def __init__(self, pid: int) -> None:
        self._pid, self._begun = pid, time.monotonic()
        self._before = dict(_delays(pid))
        self._waited = 0

    @property
    def seconds(self) -> float:
        """So many, less the longest that one of its threads was ready to run and could not. To be asked while it lives."""
        waits = (delay - self._before.get(thread, 0) for thread, delay in _delays(self._pid))
        self._waited = max(self._waited, *waits, 0)
        return time.monotonic() - self._begun - self._waited / 1e9


def _delays(pid: int) -> Iterator[tuple[str, int]]:
    for one in family(pid):
        with contextlib.suppress(OSError):
            for thread in (_PROC / str(one) / "task").iterdir():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    yield thread.name, int((thread / "schedstat").read_text().split()[1])


def wait(over: Callable[[], bool], pid: int, seconds: float) -> float | None:
    """Until ``over``: seconds of the program's own. None where these would be more than ``seconds``."""
    clock = Own(pid)
    while True:
        now = clock.seconds  # before it is asked: one that has ended tells nothing any more
        if over():
            return now
        if now > seconds:
            return None
        time.sleep(_PAUSE)


def survivors(session: int, seconds: float = 2.0) -> list[str]:
    """Processes of the session that outlive it by so many seconds."""
    until = time.monotonic() + seconds
    while True:
        found = []
        for one in _PROC.iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (one / "stat").read_text().rpartition(") ")[2].split() if one.name.isdigit() else []
                if fields and int(fields[3]) == session and fields[0] != "Z":
                    found.append(one.name)
        if not found:
            return []
        if time.monotonic() > until:
            return [f"leaves {len(found)} processes"]
        time.sleep(0.1)

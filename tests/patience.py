"""Waiting for what has to come. Tests wait for conditions, never for so long: the end here is met by failures alone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest  # programs that tests start need a tenth of a second less without

PATIENCE = 250.0
"""Seconds. Less than the time-out of a test, so that a failure says what it waited for."""


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{condition} did not come true in {PATIENCE:g} s"
        time.sleep(0.002)


async def until(condition: Callable[[], object]) -> None:
    """As ``wait_until``, in an event loop."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{condition} did not come true in {PATIENCE:g} s"
        await asyncio.sleep(0.002)


class Deadlines:
    """``asyncio.timeout(seconds)`` and ``asyncio.timeout_at(now + seconds)`` of these ``seconds``, a number that nobody else
    uses, pass when the test says so, never by the clock. Of each, ``key`` says whose it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, key: Callable[[], object] = lambda: None) -> None:
        self._seconds, self._key = seconds, key
        self._standing: list[tuple[object, asyncio.AbstractEventLoop, asyncio.Timeout]] = []
        self._timeout, self._timeout_at = asyncio.timeout, asyncio.timeout_at
        monkeypatch.setattr(asyncio, "timeout", self._of)
        monkeypatch.setattr(asyncio, "timeout_at", self._at)

    def pass_by(self, key: object = None) -> None:
        """Those of ``key`` that stand are over; may be called from any thread."""
        for whose, loop, one in list(self._standing):
            if whose == key:
                self._standing.remove((whose, loop, one))
                loop.call_soon_threadsafe(_over, one)

    def _of(self, delay: float | None) -> asyncio.Timeout:
        return self._held() if delay == self._seconds else self._timeout(delay)

    def _at(self, when: float | None) -> asyncio.Timeout:
        if when is not None and abs(when - asyncio.get_running_loop().time() - self._seconds) < PATIENCE:
            return self._held()
        return self._timeout_at(when)

    def _held(self) -> asyncio.Timeout:
        held = self._timeout(None)
        self._standing.append((self._key(), asyncio.get_running_loop(), held))
        return held


def _over(one: asyncio.Timeout) -> None:
    with contextlib.suppress(RuntimeError):  # its block has ended
        one.reschedule(0.0)

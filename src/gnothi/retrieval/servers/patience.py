"""How long to go on asking a server that does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gnothi.errors import IndexUnavailable
from gnothi.retrying import backoff

T = TypeVar("T")
_NEWS = 1.0
"""Seconds for which a failure is news enough not to ask again, once patience is over."""


class Passing(Exception):
    """A try that may be followed by a better one. ``wait`` is what the server asked for, in seconds."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


class Unreached(Passing):
    """No connection can be made."""


class Patience:
    """One server's. All who ask it wait together: from its first failure on, until it answers or ``seconds`` are over. Then
    each may try once, until it answers. Not ``known``: nobody has asked it yet, and while it is ``Unreached``, its address is
    more likely wrong than the server on its way, so nobody waits."""

    def __init__(self, seconds: float, name: str, *, known: bool = True) -> None:
        self._seconds, self._name, self._known = seconds, name, known
        self._first: float | None = None
        self._last = (0.0, "")
        self._spent = False

    async def persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What ``attempt`` gives, tried again after ``Passing``. Raises IndexUnavailable when patience is over, and whatever
        else ``attempt`` raises at once."""
        failures = 0
        while True:
            started = time.monotonic()
            try:
                result = await attempt()
            except Passing as error:
                failures += 1
                await asyncio.sleep(self._wait(error, failures, started))
            else:
                self._first, self._spent, self._known = None, False, True
                return result

    def persist_blocking(self, attempt: Callable[[], T]) -> T:
        """``persist`` for callers without an event loop."""
        failures = 0
        while True:
            started = time.monotonic()
            try:
                result = attempt()
            except Passing as error:
                failures += 1
                time.sleep(self._wait(error, failures, started))
            else:
                self._first, self._spent, self._known = None, False, True
                return result

    def _wait(self, error: Passing, failures: int, started: float) -> float:
        """Seconds until the next try. Raises IndexUnavailable when patience is over, or where nobody waits."""
        self._known = self._known or not isinstance(error, Unreached)
        if not self._known:
            raise IndexUnavailable(f"{self._name} cannot be reached: {error}. Check its address, and that it runs.") from None
        wait = backoff(failures) if error.wait is None else error.wait + backoff(1)
        now = time.monotonic()
        self._first = started if self._first is None else self._first
        self._last = now, str(error)
        if self._spent or now + wait - self._first > self._seconds:
            self._spent = True
            raise self._over() from None
        return wait

    def check(self) -> None:
        """Raises IndexUnavailable where patience is over and others have just seen that nothing changed."""
        if self._spent and time.monotonic() - self._last[0] < _NEWS:
            raise self._over()

    def _over(self) -> IndexUnavailable:
        return IndexUnavailable(
            f"{self._name} did not answer for {self._last[0] - (self._first or 0):.0f} s: {self._last[1]}. Look at the server, "
            f"or wait longer with its setting patience (now {self._seconds:g} s)."
        )

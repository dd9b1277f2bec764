"""Room for so many questions at a time and so many that wait. Who finds none is told at once, and when to come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gnothi.serving.failures import Refusal, busy

LONGEST = 60.0
_MEMORY = 0.9


class Room:
    """``seconds`` is what a question takes, the latest ones weighing most. Who comes first is first."""

    def __init__(self, slots: int, waiting: int) -> None:
        self.slots, self.room = slots, waiting
        self.under_way = self.waiting = 0
        self.seconds = 1.0
        self.closing = False
        self._free = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[float]:
        """A slot, as soon as one is free; gives the seconds waited. Raises Refusal where there is no room to wait, either."""
        if self.closing:
            raise Refusal(
                503,
                "The server is stopping. Ask again in a moment.",
                "server_error",
                "shutting_down",
                headers={"Retry-After": "5"},
            )
        if self.under_way + self.waiting >= self.slots + self.room:
            wait = min(LONGEST, self.seconds * (1 + self.waiting / self.slots))
            raise busy("Too many questions are waiting. Try again later.", wait, "overloaded")
        came = time.perf_counter()
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.under_way += 1
        began = time.perf_counter()
        try:
            yield began - came
            self.seconds = _MEMORY * self.seconds + (1 - _MEMORY) * (time.perf_counter() - began)
        finally:
            self.under_way -= 1
            self._free.release()

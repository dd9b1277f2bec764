"""An event loop on a thread of its own, so that models and indexes serve synchronous and asynchronous callers alike."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from gnothi.errors import UsageError

T = TypeVar("T")


class Loop:
    """Runs coroutines of any thread and any other loop. It ends with ``stop``, or with the last reference to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name="gnothi", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, _end, self._loop, self._thread)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it. An interrupt cancels the work and is raised when that has ended."""
        waiting = self.submit(work)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it in the caller's loop; cancelling the wait cancels the work."""
        return await asyncio.wrap_future(self.submit(work))

    def stop(self) -> None:
        self._finalizer()


def refuse_running_loop(called: str, instead: str) -> None:
    """Raise UsageError where a synchronous call would block the event loop that it is made in."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"{called} was called inside a running event loop, which it would block. Use `await {instead}` there.")


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """What still runs is cancelled and comes to its end first."""
    if not thread.is_alive():
        return
    ending = asyncio.run_coroutine_threadsafe(_cancelled(loop), loop)
    if thread is not threading.current_thread():
        ending.result()
        thread.join()


async def _cancelled(loop: asyncio.AbstractEventLoop) -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    loop.call_soon(loop.stop)

"""The far end of a worker, wherever it is: it opens what is asked and answers questions, many at once.

Questions arrive in messages of many, and answers leave so: a message to another process costs about as much as a small model
takes for a question.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, NamedTuple, TypeVar

from gnothi.errors import GnothiError
from gnothi.types import Question
from gnothi.version import __version__

R = TypeVar("R")
Open = Callable[[], AbstractAsyncContextManager[Mapping[str, Any]]]
"""Opens what is asked, by name: methods, say. It is called in every worker, so it must be a function of a module, or a
``partial`` of one."""
Ask = Callable[[str, Any, Question], Awaitable[R]]
"""Asks what is open under the name a question, in the worker: ``runs.runner.outcome`` with a seed, say. As ``Open``."""
Assignment = tuple[int, str, Question]
"""A number of the asker's, what is asked, and the question."""
Answered = tuple[int, Any]
"""The question's number, and what came of it: an exception where it raised."""

_LINGER = 0.01
"""Seconds that a finished answer may wait for others to leave with it ..."""
_ENOUGH = 8
"""... as long as fewer are finished than one in so many of those under way."""


class WorkerInfo(NamedTuple):
    """What a worker says once it is open."""

    version: str
    under_way: int | None
    precision: str | None
    date: str = ""


class Host:
    """What is raised is returned, as the error that it is: what carries it would wrap it."""

    def __init__(self, opened: Open, ask: Ask[Any]) -> None:
        self._opened, self._ask = opened, ask
        self._found: Mapping[str, Any] = {}
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._done: list[Answered] = []
        self._some, self._enough = asyncio.Event(), asyncio.Event()

    async def open(self) -> WorkerInfo | Exception:
        opening: asyncio.Future[WorkerInfo | Exception] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve(opening))
        return await opening

    async def take(self, assignments: Sequence[Assignment]) -> None:
        """More questions."""
        for one in assignments:
            task = asyncio.create_task(self._answer(*one))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def work(self, assignments: Sequence[Assignment] = ()) -> list[Answered]:
        """Takes questions; all that is finished, as soon as something is. One call at a time."""
        await self.take(assignments)
        await self._some.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self._enough.wait()
        done, self._done = self._done, []
        self._some.clear()
        self._enough.clear()
        return done

    async def close(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._closing.set()
        if self._serving is not None:
            await self._serving

    async def _answer(self, number: int, name: str, question: Question) -> None:
        try:
            result = await self._ask(name, self._found[name], question)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            result = portable(error)
        self._done.append((number, result))
        self._some.set()
        if len(self._done) * _ENOUGH >= len(self._running):  # this one still among them
            self._enough.set()

    async def _serve(self, opening: asyncio.Future[WorkerInfo | Exception]) -> None:
        """One task opens and closes, as some of what is open demands."""
        try:
            async with self._opened() as found:
                self._found = found
                abilities = getattr(found, "under_way", None), getattr(found, "precision", None), getattr(found, "date", "")
                opening.set_result(WorkerInfo(__version__, *abilities))
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - raised by whoever opened
            if not opening.done():
                opening.set_result(portable(error))


def portable(error: Exception) -> Exception:
    """The error as the other process can read it: what takes other arguments than a message becomes the class above it."""
    if not isinstance(error, GnothiError):
        return RuntimeError("".join(traceback.format_exception(error)))
    kinds: tuple[Any, ...] = type(error).__mro__
    kind = next(one for one in kinds if one.__init__ is Exception.__init__)
    copy: Exception = kind(error.message)
    return copy

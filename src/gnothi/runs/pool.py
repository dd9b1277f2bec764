"""Workers that answer questions, wherever they are: asked where least is under way, and replaced when they are lost.

Whoever asks keeps the rows. So a lost worker costs what was under way there, which is asked again, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic

from gnothi.errors import InvalidSetting, WorkerDied
from gnothi.runs.host import R, WorkerInfo
from gnothi.runs.remote_worker import Kind, Lost, Place
from gnothi.types import Question
from gnothi.version import __version__

TRIES = 3
"""How often a question is asked whose worker is lost meanwhile; and how many workers in a row may be lost without an answer: so
many for each that there should be."""
_PATIENCE, _HASTE = 10.0, 2.0
"""Seconds for all workers to close what they have open: when all is done, when not."""


@asynccontextmanager
async def pool(kind: Kind, count: int, warn: Callable[[str], None]) -> AsyncIterator[Pool[Any]]:
    """``count`` workers of the ``kind``; ``warn`` is told of those that are lost. What one of them raises while opening is
    raised here. Raises WorkerDied where one after the other is lost."""
    made: Pool[Any] = Pool(kind, count, warn)
    patience = _HASTE  # whatever ends it early: what was answered is kept by whoever asked
    try:
        await made.begin()
        yield made
        patience = _PATIENCE
    finally:
        await made.close(patience)


class Pool(Generic[R]):
    """``under_way``: how many questions all workers gain from at a time, ``precision``: in which the model computes, if it
    says; ``date``: what prompts take for today, if they tell it."""

    def __init__(self, kind: Kind, count: int, warn: Callable[[str], None]) -> None:
        self._kind, self._warn = kind, warn
        self._workers: list[_Worker] = []
        self._ending: list[asyncio.Future[None]] = []
        self._count, self._started, self._lost = count, 0, 0
        self._first: WorkerInfo | None = None
        self.under_way: int | None = None
        self.precision: str | None = None
        self.date = ""

    async def begin(self) -> None:
        for _ in range(self._count):
            self._workers.append(self._start())
        first = (await self._least_busy(all_open=self._kind.together)).opening.result()
        self.under_way = first.under_way and first.under_way * self._count
        self.precision = first.precision  # that of all: one in another is refused
        self.date = first.date

    async def __call__(self, name: str, question: Question) -> R:
        """Raises WorkerDied, or whatever stops the run in the worker."""
        for _ in range(TRIES):
            worker = await self._least_busy()
            try:
                answer: R = await worker.place.ask(name, question)
            except Lost as error:
                why = str(error)
                self._replace(worker, error)
                continue
            self._lost = 0
            return answer
        raise WorkerDied(
            f"stopped: the question {question.id!r} was given to {TRIES} {self._kind.several}, and each was lost with it; the "
            f"last {why} It, or one that was under way beside it, may be the cause: with <--concurrency 1> only that one is "
            f"named. If memory ran out, {self._kind.relief}. What is finished is kept: the same command goes on from there."
        )

    async def close(self, patience: float) -> None:
        """Those that have not opened anything yet have nothing to close, and cannot hear."""
        opened = [one for one in self._workers if one.is_open and not one.place.lost]
        closing = [asyncio.ensure_future(one.place.close()) for one in opened]
        if closing:
            await asyncio.wait(closing, timeout=patience)
        left: list[asyncio.Future[Any]] = [*closing, *(one.opening for one in self._workers)]
        for task in left:
            task.cancel()
        await asyncio.gather(*self._ending, *(one.place.end() for one in self._workers))
        await asyncio.gather(*left, return_exceptions=True)

    async def _least_busy(self, all_open: bool = False) -> _Worker:
        """Of those that are open; waits for the first, or for all."""
        while True:
            for one in list(self._workers):
                if error := one.failure:
                    if not isinstance(error, Lost):
                        raise error
                    self._replace(one, error)
            ready = [one for one in self._workers if one.is_open]
            if len(ready) == self._count or (ready and not all_open):
                return min(ready, key=lambda one: one.place.busy)
            opening = [one.opening for one in self._workers if not one.opening.done()]
            await asyncio.wait(opening, return_when=asyncio.FIRST_COMPLETED)

    def _start(self) -> _Worker:
        self._started += 1
        place = self._kind.make(self._started)
        return _Worker(place, asyncio.ensure_future(self._open(place)))

    async def _open(self, place: Place) -> WorkerInfo:
        info = await place.open()
        if info.version != __version__:
            raise InvalidSetting(
                f"<--on>: a node of the cluster has Gnothi {info.version}, expected {__version__} as here. Install the same "
                "version on every node."
            )
        self._first = self._first or info
        if info.precision != self._first.precision:
            raise InvalidSetting(
                f"<--on>: the model computes in {info.precision} on one node and in {self._first.precision} on another, so its "
                "numbers would differ. Say in which: <--set model.dtype=...>"
            )
        return info

    def _replace(self, worker: _Worker, error: Lost) -> None:
        """By a new one. Many questions may tell of the same loss."""
        if worker not in self._workers:
            return
        self._lost += 1
        if self._lost > TRIES * self._count:
            raise WorkerDied(
                f"stopped: {self._lost} {self._kind.several} were lost, one after the other, without an answer between; the "
                f"last {error} If memory ran out, {self._kind.relief}. What is finished is kept: remove the cause and give "
                "the same command again."
            )
        asked_again = f" with {worker.place.left} questions that are asked again" if worker.place.left else ""
        self._warn(f"{self._kind.one} was lost{asked_again}: it {error}")
        self._workers[self._workers.index(worker)] = self._start()
        self._ending.append(asyncio.ensure_future(worker.place.end()))


@dataclass(eq=False)
class _Worker:
    place: Place
    opening: asyncio.Future[WorkerInfo]

    @property
    def failure(self) -> BaseException | None:
        if not self.opening.done():
            return None
        return self.opening.exception() or self.place.lost

    @property
    def is_open(self) -> bool:
        return self.opening.done() and not self.opening.cancelled() and self.opening.exception() is None

"""Processes that answer questions, each with models and indexes of its own.

One process computes its methods and its model's decode loop under one interpreter lock; with a small model that is what a
machine of several cores waits for.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from gnothi.errors import GnothiError, WorkerDied
from gnothi.types import Question

R = TypeVar("R")
Open = Callable[[], AbstractAsyncContextManager[Mapping[str, Any]]]
"""Opens what is asked, by name: methods, say. It is called in every worker, so it must be a function of a module, or a
``partial`` of one."""
Ask = Callable[[str, Any, Question], Awaitable[R]]
"""Asks what is open under the name a question, in the worker: ``runs.outcomes.outcome`` with a seed, say. As ``Open``."""

_READY = -1
_GONE = (OSError, ValueError)  # what sending raises when the other end is closed, or this one
_PATIENCE = 10.0  # seconds for a worker to close what it has open


@asynccontextmanager
async def workers(count: int, opened: Open, ask: Ask[R]) -> AsyncIterator[Workers[R]]:
    """``count`` processes that have opened what is asked; what one of them raises while opening is raised here."""
    context = multiprocessing.get_context("spawn")
    started: list[_Worker] = []
    try:
        for number in range(count):
            here, there = context.Pipe()
            process = context.Process(
                target=_main, args=(there, opened, ask, _threads(count)), name=f"gnothi-worker-{number + 1}", daemon=True
            )
            process.start()
            there.close()
            started.append(_Worker(process, here, asyncio.get_running_loop()))
        told = await asyncio.gather(*(worker.ready for worker in started))
        under_way = [one for one, _ in told if one]
        yield Workers(started, sum(under_way) if len(under_way) == count else None, told[0][1])
    finally:
        await asyncio.to_thread(_stop, started)


class Workers(Generic[R]):
    """Answers questions where least is under way. ``under_way``: how many all of them gain from at a time, ``precision``: in
    which the model computes, if it says."""

    def __init__(self, started: Sequence[_Worker], under_way: int | None, precision: str | None) -> None:
        self._started = started
        self.under_way, self.precision = under_way, precision

    async def __call__(self, name: str, question: Question) -> R:
        """Raises WorkerDied, or whatever stops the run in the worker."""
        worker = min(self._started, key=lambda one: len(one.waiting))
        result: R = await worker.ask(name, question)
        return result


@dataclass(eq=False)
class _Worker:
    """The parent's end of a worker. Replies arrive on a thread, which hands them to the loop."""

    process: Any
    connection: Connection
    loop: asyncio.AbstractEventLoop
    waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asked = 0
        self._dead = False
        self.ready = self._expect(_READY)
        self.reader = threading.Thread(target=self._read, name=f"{self.process.name}-replies", daemon=True)
        self.reader.start()

    async def ask(self, name: str, question: Question) -> Any:
        self._asked += 1
        number = self._asked
        reply = self._expect(number)
        if not self._dead:
            try:
                self.connection.send((number, name, question))
            except OSError:
                self._lost()
        try:
            return await reply
        finally:
            self.waiting.pop(number, None)
            if reply.cancelled() and not self._dead:
                with suppress(*_GONE):
                    self.connection.send((number, None, None))

    def _expect(self, number: int) -> asyncio.Future[Any]:
        reply = self.waiting[number] = self.loop.create_future()
        if self._dead:
            reply.set_exception(self._death())
        return reply

    def _read(self) -> None:
        while True:
            try:
                number, result = self.connection.recv()
            except (EOFError, OSError):
                break
            self._to_loop(self._arrived, number, result)
        self._to_loop(self._lost)

    def _to_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended, nobody waits
            self.loop.call_soon_threadsafe(function, *arguments)

    def _arrived(self, number: int, result: Any) -> None:
        reply = self.waiting.pop(number, None)
        if reply is None or reply.done():
            return
        if isinstance(result, BaseException):
            reply.set_exception(result)
        else:
            reply.set_result(result)

    def _lost(self) -> None:
        self._dead = True
        for reply in self.waiting.values():
            if not reply.done():
                reply.set_exception(self._death())
        self.waiting.clear()

    def _death(self) -> WorkerDied:
        self.process.join(1)
        code = self.process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        return WorkerDied(
            f"stopped: the worker process {self.process.name} {how}. Where memory ran out, use fewer with <--workers>. What is "
            "finished is kept: the same command goes on from there."
        )


def _stop(started: Sequence[_Worker]) -> None:
    for worker in started:
        with suppress(*_GONE):
            worker.connection.send(None)
    for worker in started:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.reader.join()
        worker.connection.close()


def _threads(count: int) -> int:
    """Threads of a tensor operation, so that the workers together have one for each processor."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, processors // count)


# --- in the worker -------------------------------------------------------------------------------------------------------


def _main(connection: Connection, opened: Open, ask: Ask[Any], threads: int) -> None:
    # An interrupt of the terminal reaches every process; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Read by the numeric libraries when they are imported, which has not happened yet.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    asyncio.run(_serve(connection, opened, ask))


async def _serve(connection: Connection, opened: Open, ask: Ask[Any]) -> None:
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    threading.Thread(target=_listen, args=(connection, loop, inbox), daemon=True).start()
    running: dict[int, asyncio.Task[None]] = {}

    async def answer(number: int, name: str, asked: Any, question: Question) -> None:
        try:
            result = await ask(name, asked, question)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            result = error
        finally:
            del running[number]
        _send(connection, number, result)

    try:
        async with opened() as found:
            _send(connection, _READY, (getattr(found, "under_way", None), getattr(found, "precision", None)))
            while (asked := await inbox.get()) is not None:
                number, name, question = asked
                if name is None:
                    if number in running:
                        running[number].cancel()
                    continue
                running[number] = loop.create_task(answer(number, name, found[name], question))
            for task in list(running.values()):
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)
    except Exception as error:  # noqa: BLE001 - shown by the parent, which ends us
        _send(connection, _READY, error)


def _listen(connection: Connection, loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[Any]) -> None:
    while True:
        try:
            asked = connection.recv()
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone, and nobody will read an answer
        loop.call_soon_threadsafe(inbox.put_nowait, asked)
        if asked is None:
            return


def _send(connection: Connection, number: int, result: Any) -> None:
    """Only the loop's thread sends."""
    if isinstance(result, Exception):
        result = portable(result)
    with suppress(*_GONE):
        connection.send((number, result))


def portable(error: Exception) -> Exception:
    """The error as the other process can read it: what takes other arguments than a message becomes the class above it."""
    if not isinstance(error, GnothiError):
        return RuntimeError("".join(traceback.format_exception(error)))
    kinds: tuple[Any, ...] = type(error).__mro__
    kind = next(one for one in kinds if one.__init__ is Exception.__init__)
    copy: Exception = kind(error.message)
    return copy

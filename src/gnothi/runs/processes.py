"""Workers that are processes of this machine, each with models and indexes of its own.

One process computes its methods and its model's decode loop under one interpreter lock; with a small model that is what a
machine of several cores waits for.
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from gnothi.runs.host import Ask, Assignment, Host, Open, WorkerInfo, portable
from gnothi.runs.remote_worker import Kind, Place

_GONE = (OSError, ValueError)  # what sending raises when the other end is closed, or this one


def processes(count: int, opened: Open, ask: Ask[Any]) -> Kind:
    """``count`` of them share the machine's processors."""
    return Kind(
        partial(_Process, opened, ask, _threads(count)),
        "a worker process",
        "worker processes",
        "use fewer with <--workers>, or lower <--concurrency>",
        together=True,
    )


class _Process(Place):
    """Its messages arrive on a thread, which hands them to the loop."""

    def __init__(self, opened: Open, ask: Ask[Any], threads: int, number: int) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        context = multiprocessing.get_context("spawn")
        self._connection, there = context.Pipe()
        # What is to be done follows by the pipe: reading it may import a lot, and by then the process has to see to its end.
        self._process: Any = context.Process(
            target=_main, args=(there, os.getpid(), threads), name=f"gnothi-worker-{number}", daemon=True
        )
        self._process.start()
        there.close()
        self._info: asyncio.Future[WorkerInfo] = self._loop.create_future()
        self._ended = asyncio.Event()
        work = bytes(ForkingPickler.dumps((opened, ask)))
        self._reader = threading.Thread(target=self._read, args=(work,), name=f"{self._process.name}-replies", daemon=True)
        self._reader.start()

    async def open(self) -> WorkerInfo:
        return await self._info

    async def close(self) -> None:
        with suppress(*_GONE):
            self._connection.send(None)
        await self._ended.wait()

    async def end(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._reader.join()
        self._process.join()
        self._connection.close()

    def _send(self, assignments: Sequence[Assignment]) -> None:
        with suppress(*_GONE):  # the reader tells of its end
            self._connection.send(assignments)

    def _read(self, work: bytes) -> None:
        with suppress(EOFError, OSError):
            self._connection.send_bytes(work)
            self._to_loop(self._opened, self._connection.recv())
            while True:
                self._to_loop(self._arrived, self._connection.recv())
        self._process.join()  # it has closed its end, which it does last of all
        code = self._process.exitcode or 0
        how = f"was killed by signal {-code}." if code < 0 else f"ended with exit code {code}."
        self._to_loop(self._over, how)

    def _to_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended, nobody waits
            self._loop.call_soon_threadsafe(function, *arguments)

    def _opened(self, info: WorkerInfo | Exception) -> None:
        if self._info.done():
            return
        if isinstance(info, Exception):
            self._info.set_exception(info)
        else:
            self._info.set_result(info)

    def _over(self, how: str) -> None:
        self._gone(how)
        if self.lost:
            self._opened(self.lost)
        self._ended.set()


def _threads(count: int) -> int:
    """Threads of a tensor operation, so that the workers together have one for each processor."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, processors // count)


# --- in the worker -------------------------------------------------------------------------------------------------------


def _main(connection: Connection, parent: int, threads: int) -> None:
    # An interrupt of the terminal reaches every process; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    # Read by the numeric libraries when they are imported, which has not happened yet.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    try:
        opened, ask = connection.recv()
    except Exception as error:  # noqa: BLE001 - what a name leads to, here and not there
        connection.send(portable(error))
        return
    asyncio.run(_serve(connection, Host(opened, ask)))


def _end_with(parent: int) -> None:
    """Where the system can see to it (Linux), also while a library that loads lets nothing else of this process run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it was gone before
            os._exit(1)


async def _serve(connection: Connection, host: Host) -> None:
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    threading.Thread(target=_listen, args=(connection, asyncio.get_running_loop(), inbox), daemon=True).start()
    connection.send(await host.open())
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(_answer(connection, host))
        while (assignments := await inbox.get()) is not None:
            await host.take(assignments)
        answering.cancel()
    await host.close()


async def _answer(connection: Connection, host: Host) -> None:
    """Only the loop's thread sends."""
    while True:
        connection.send(await host.work())


def _listen(connection: Connection, loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[Any]) -> None:
    while True:
        try:
            assignments = connection.recv()
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone, and nobody will read an answer
        loop.call_soon_threadsafe(inbox.put_nowait, assignments)
        if assignments is None:
            return

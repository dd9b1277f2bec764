"""Structured concurrency: gather that cancels siblings, the Batcher that turns concurrent calls into batches, and the Loop that
serves synchronous and asynchronous callers alike."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, cast

from gnothi.waiting import waited

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
Request = TypeVar("Request")
Result = TypeVar("Result")


async def gather(*awaitables: Awaitable[T]) -> list[T]:
    """Await all, in order. The first failure cancels the others and is raised as itself, not inside an ExceptionGroup."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_coroutine(awaitable)) for awaitable in awaitables]
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


async def both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """``gather`` for two awaitables of different types."""
    results: list[Any] = await gather(cast("Awaitable[Any]", first), cast("Awaitable[Any]", second))
    return results[0], results[1]


def _coroutine(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    # A coroutine becomes a task itself: inside a wrapper that is cancelled before its first step it would never be awaited.
    if isinstance(awaitable, Coroutine):
        return awaitable

    async def wait() -> T:
        return await awaitable

    return wait()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


_turns = itertools.count(1)
_turn: ContextVar[int] = ContextVar("gnothi_turn", default=0)


@contextlib.contextmanager
def in_turn() -> Iterator[None]:
    """What is asked of workers inside, by tasks started there too, may go before what is asked inside later turns: a question
    that was begun is finished before the next one is."""
    token = _turn.set(next(_turns))
    try:
        yield
    finally:
        _turn.reset(token)


class _Flag:
    """Says that a future is done without taking its lock, since workers ask at every step. An object of its own, so that no
    future refers to itself."""

    __slots__ = ("up",)

    def __init__(self) -> None:
        self.up = False

    def put_up(self, _: object = None) -> None:
        self.up = True


_calm: ContextVar[_Flag | None] = ContextVar("gnothi_calm", default=None)


@contextlib.contextmanager
def hurried() -> Iterator[Callable[[], None]]:
    """What is asked of workers inside, by tasks started there too, is hurried until the function given is called: somebody
    waits for the first decision. What is not may wait for it, for a while."""
    flag = _Flag()
    token = _calm.set(flag)
    try:
        yield flag.put_up
    finally:
        _calm.reset(token)


class Job(Generic[Request, Result]):
    """A request that waits for its outcome. The worker calls ``finish`` once; later calls do nothing. ``turn``: lower ones may
    go first (``in_turn``); so may ``hurried`` ones."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.turn = _turn.get()
        calm = _calm.get()
        self.hurried = calm is not None and not calm.up
        self.future: concurrent.futures.Future[Result] = concurrent.futures.Future()
        self._flag = _Flag()
        self.future.add_done_callback(self._flag.put_up)
        self.called_at = time.perf_counter()
        self.begun: float | None = None

    @property
    def settled(self) -> bool:
        """The job has its outcome or was cancelled: work on it may be dropped."""
        return self._flag.up

    def begin(self) -> None:
        """Work on it begins. A worker that takes jobs before it has room for them says so again when it has."""
        self.begun = time.perf_counter()

    def finish(self, outcome: Result | Exception) -> None:
        # The caller may cancel between a check and the call, so the race is resolved by the future itself.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            if isinstance(outcome, Exception):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(outcome)


class Inbox(Generic[Request, Result]):
    """What waits for a worker. ``take`` hands out everything that arrived since the last call and never blocks, so that
    a worker in the middle of a batch can admit newcomers."""

    def __init__(self) -> None:
        self._waiting: deque[Job[Request, Result]] = deque()
        self._running: list[Job[Request, Result]] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, request: Request) -> Job[Request, Result]:
        job: Job[Request, Result] = Job(request)
        with self._changed:
            if self._closed:
                raise RuntimeError("this batcher is closed: no request can be sent any more")
            self._waiting.append(job)
            self._changed.notify()
        return job

    def take(self) -> list[Job[Request, Result]]:
        if not self._waiting:
            return []
        with self._changed:
            jobs = [job for job in self._waiting if not job.settled]
            self._waiting.clear()
            for job in jobs:
                job.begin()
            self._running = [job for job in self._running if not job.settled] + jobs
        return jobs

    def wait(self) -> bool:
        """Block until something waits; False when the inbox is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return bool(self._waiting)

    @property
    def deserted(self) -> bool:
        """Whether it is closed and nobody waits for what was taken from it."""
        return self._closed and all(job.settled for job in self._running)

    def fail(self, error: Exception) -> None:
        """Give ``error`` to every job that was taken and has no outcome."""
        for job in self._running:
            job.finish(error)
        self._running.clear()

    def close(self) -> None:
        """Refuse new requests; those that wait are cancelled."""
        with self._changed:
            self._closed = True
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
            self._changed.notify_all()


Work = Callable[[Inbox[Request, Result]], None]


class Batcher(Generic[Request, Result]):
    """Runs requests of any number of tasks and event loops on one worker thread.

    Whenever the thread is free and something waits it calls ``work(inbox)``, which takes what is there, finishes every job
    it took and returns when nothing is left; there are no timers. A cancelled call leaves the batch without harm to the
    others. An exception that escapes ``work`` goes to the jobs it had taken, and the thread goes on with the next ones.
    """

    def __init__(self, work: Work[Request, Result], name: str = "batcher") -> None:
        self._work = work
        self._name = name
        self._inbox: Inbox[Request, Result] = Inbox()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    async def submit(self, request: Request) -> Result:
        with self._starting:
            job = self._inbox.put(request)
            if self._thread is None:
                self._start(self._serve)
        try:
            return await asyncio.wrap_future(job.future)
        finally:
            waited(job.called_at, job.begun, time.perf_counter())

    def begin(self, function: Callable[[], T]) -> T:
        """Call ``function`` on the worker thread before anything else runs there, and wait for what it returns or raises."""
        outcome: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                outcome.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller
                outcome.set_exception(error)
                return
            self._serve()

        with self._starting:
            if self._thread is not None:
                raise RuntimeError("the batcher runs already: begin comes before the first request")
            self._start(run)
        return outcome.result()

    def _start(self, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name=f"gnothi-{self._name}", daemon=True)
        self._thread.start()

    async def aclose(self) -> None:
        """Cancel what waits, let what runs finish, end the thread. Idempotent."""
        self._inbox.close()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        while self._inbox.wait():
            try:
                self._work(self._inbox)
                unfinished: Exception = RuntimeError(f"{self._name} left a request without a result")
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the callers, not to this thread
                unfinished = error
            self._inbox.fail(unfinished)


def in_batches(run: Callable[[Sequence[Request]], Sequence[Result | Exception]]) -> Work[Request, Result]:
    """Work for a Batcher from a function that answers a whole batch: one result or exception per request, in order."""

    def work(inbox: Inbox[Request, Result]) -> None:
        while jobs := inbox.take():
            for job, outcome in zip(jobs, run([job.request for job in jobs]), strict=True):
                job.finish(outcome)

    return work


# --- a loop of its own ---------------------------------------------------------------------------------------------------


class Loop:
    """On a thread of its own; runs coroutines of any thread and any other loop. It ends with ``stop``, or with the last
    reference to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name="gnothi", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, _end, self._loop, self._thread)

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
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

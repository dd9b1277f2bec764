"""One question of one client: its turn, its time, and its end when the client leaves. Whole, or as a stream of server-sent
events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gnothi.events import Event, Listener
from gnothi.serving import logs
from gnothi.serving.context import Context
from gnothi.serving.failures import ClientLeft, Refusal, refusal
from gnothi.serving.keys import Account
from gnothi.serving.rendered_answer import EventLines, EventNarrator
from gnothi.serving.service import Answered

T = TypeVar("T")
Work = Callable[[Sequence[Listener]], Awaitable[T]]
"""Answers a question and sends its events to the listeners."""
ALIVE = ": alive\n\n"


@asynccontextmanager
async def turn(context: Context, account: Account) -> AsyncIterator[None]:
    """Inside, a question of this account may be asked: there was room, and its limits allow it. Raises Refusal."""
    account.admit()
    async with context.room.place() as waited:
        context.metrics.observe("queue", waited)
        try:
            yield
        finally:
            if context.keys is not None:
                context.keys.keep()


async def whole(context: Context, request: Request, work: Work[T]) -> T:
    """What comes of the work, in its turn and its time. Raises Refusal, TimeoutError, ClientLeft, and what the work raises."""
    account = context.account(request)

    async def run() -> T:
        async with asyncio.timeout(context.settings.timeout), turn(context, account):
            return await work([account])

    return await unless_left(request.receive, run())


async def unless_left(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Its outcome; cancelled, and ClientLeft raised, where the client leaves before."""
    task, disconnected = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        await _ended(task, disconnected)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- streams ---------------------------------------------------------------------------------------------------------------


class Form(Protocol):
    """The server-sent events of a stream, in one of the formats."""

    def begin(self) -> Iterator[str]: ...

    def event(self, narrated: EventLines) -> Iterator[str]: ...

    def end(self, answered: Answered) -> Iterator[str]: ...

    def failed(self, failure: Refusal) -> Iterator[str]: ...


async def streamed(context: Context, request: Request, work: Work[Answered], form: Form) -> Response:
    """The stream, once there is room: before that, a refusal still has a status of its own. Raises as ``whole``."""
    account, stack = context.account(request), AsyncExitStack()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.settings.timeout

    async def enter() -> None:
        async with asyncio.timeout_at(deadline):
            await stack.enter_async_context(turn(context, account))

    await unless_left(request.receive, enter())
    return _Stream(context, work, form, account, stack, deadline)


class _Stream(Response):
    """Gives its room back when the work is done, however slowly the client reads."""

    media_type = "text/event-stream"

    def __init__(
        self, context: Context, work: Work[Answered], form: Form, account: Account, room: AsyncExitStack, deadline: float
    ) -> None:
        self.status_code, self.background = 200, None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._context, self._work, self._form, self._account = context, work, form, account
        self._room, self._deadline = room, deadline
        self._news: asyncio.Queue[Event | Answered | BaseException] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send, self._scope = send, scope
        working, disconnected = asyncio.ensure_future(self._run()), asyncio.ensure_future(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._say(self._form.begin())
            if await self._relay(disconnected):
                await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError as stopped:  # the server's grace is over
            with contextlib.suppress(Exception):
                await self._say(self._form.failed(refusal(stopped)))
            raise
        finally:
            await _ended(working, disconnected)
            await self._room.aclose()

    async def _run(self) -> None:
        try:
            async with asyncio.timeout_at(self._deadline):
                self._news.put_nowait(await self._work([self._account, self._news.put_nowait]))
        except Exception as error:  # noqa: BLE001 - told to the client, and to the observers by the service
            self._news.put_nowait(error)
        finally:
            await self._room.aclose()

    async def _relay(self, disconnected: asyncio.Future[None]) -> bool:
        """Whether the client stayed to the end."""
        narrate, began, first = EventNarrator(), asyncio.get_running_loop().time(), True
        while True:
            getting = asyncio.ensure_future(self._news.get())
            try:
                waited: set[asyncio.Future[Any]] = {getting, disconnected}
                while not getting.done():
                    await asyncio.wait(waited, timeout=self._context.settings.heartbeat, return_when=asyncio.FIRST_COMPLETED)
                    if disconnected.done():
                        logs.note(self._scope, left=True)
                        return False
                    if not getting.done():
                        await self._say([ALIVE])
                news = getting.result()
            finally:
                getting.cancel()
            if isinstance(news, Answered):
                await self._say(self._form.end(news))
                return True
            if isinstance(news, BaseException):
                logs.note(self._scope, **logs.described(news, self._context.settings.log_content))
                await self._say(self._form.failed(refusal(news)))
                return True
            if (lines := narrate(news)) is not None:
                if first:
                    first = False
                    self._context.metrics.observe("first_event", asyncio.get_running_loop().time() - began)
                await self._say(self._form.event(lines))

    async def _say(self, texts: Iterator[str] | list[str]) -> None:
        if body := "".join(texts):
            await self._send({"type": "http.response.body", "body": body.encode(), "more_body": True})

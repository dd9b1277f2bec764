"""``/mcp``: tools for programs over MCP's streamable HTTP, without sessions, behind the same door and in the same queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from gnothi.serving.answering import turn
from gnothi.serving.context import Context

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context as Call

    from gnothi.serving.tools import Caller, Tools

JSON, STREAM = "application/json", "text/event-stream"
STREAMS = {STREAM, "text/*", "*/*"}


def tools_of(context: Context) -> Tools | None:
    """None without the package ``mcp``."""
    try:
        from gnothi.serving.tools import Caller, Tools
    except ImportError:
        return None

    @asynccontextmanager
    async def let_in(call: Call[Any, Any]) -> AsyncIterator[Caller]:
        request: Any = call.request_context.request
        account, base = context.account(request), context.base(request)
        async with asyncio.timeout(context.settings.timeout), turn(context, account):
            yield Caller((account,), lambda passage: base + context.links.passage(passage))

    return Tools(context.service, let_in, context.settings.max_question)


def routes(context: Context) -> Sequence[BaseRoute]:
    if context.tools is None:
        return []
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
    from sse_starlette.sse import AppStatus  # older clients' streams

    AppStatus.enable_automatic_graceful_drain = False  # told to stop, streams finish as all others do
    AppStatus.should_exit = False  # left by a server that a signal stopped in this process before, it ends every stream at once
    server, longest = context.tools.server, context.settings.max_body
    for whole in (False, True):
        server.streamable_http_app(stateless_http=True, max_request_body_size=longest, json_response=whole)
        context.tools.managers.append(server.session_manager)
    streamed, in_json = map(StreamableHTTPASGIApp, context.tools.managers)

    class Either:
        """A stream, with progress, for who reads one; JSON for who does not say so."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            headers = MutableHeaders(scope=scope)
            kinds = {one.partition(";")[0].strip().lower() for one in headers.get("accept", "").split(",")} - {""}
            if scope["method"] == "POST" and not kinds & STREAMS:
                headers["accept"] = headers.get("accept", "") if kinds else JSON
                await in_json(scope, receive, send)
                return
            if kinds == {STREAM}:
                headers["accept"] = f"{JSON}, {STREAM}"
            await streamed(scope, receive, send)

    return [Route(path, Either()) for path in ("/mcp", "/mcp/")]


@asynccontextmanager
async def lifespan(context: Context) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for manager in [] if context.tools is None else context.tools.managers:
            await stack.enter_async_context(manager.run())
        yield

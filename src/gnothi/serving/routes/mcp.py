"""``/mcp``: tools for programs over MCP's streamable HTTP, without sessions, behind the same door and in the same queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute, Route

from gnothi.serving.answering import turn
from gnothi.serving.context import Context

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context as Call

    from gnothi.serving.tools import Caller, Tools


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
    server = context.tools.server
    server.streamable_http_app(stateless_http=True, max_request_body_size=context.settings.max_body)
    return [Route("/mcp", StreamableHTTPASGIApp(server.session_manager))]


@asynccontextmanager
async def lifespan(context: Context) -> AsyncIterator[None]:
    if context.tools is None:
        yield
        return
    async with context.tools.server.session_manager.run():
        yield

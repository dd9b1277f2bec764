"""The server as an ASGI application: its parts, each with routes of its own, behind one door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.serving import telemetry
from gnothi.serving.access import Access
from gnothi.serving.context import Context
from gnothi.serving.drift import Drifts
from gnothi.serving.failures import Refusal
from gnothi.serving.feedback import Feedback
from gnothi.serving.keys import Keys
from gnothi.serving.links import Links
from gnothi.serving.metrics import Metrics, Room
from gnothi.serving.routes import chat, mcp, models, page, plain_json, responses
from gnothi.serving.service import Service
from gnothi.serving.settings import ServerSettings


def _health(context: Context) -> Sequence[BaseRoute]:
    """Whether the server lives, whether it takes questions, and its numbers for Prometheus."""

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        closing = context.room.closing
        return JSONResponse({"status": "stopping" if closing else "ready"}, 503 if closing else 200)

    async def metrics(_: Request) -> Response:
        content, kind = context.metrics.text()
        return Response(content, headers={"content-type": kind})

    return [Route("/healthz", health), Route("/readyz", ready), Route("/metrics", metrics)]


PARTS: list[Callable[[Context], Sequence[BaseRoute]]] = [
    models.routes,
    chat.routes,
    responses.routes,
    plain_json.routes,
    mcp.routes,
    page.routes,
    _health,
]
"""Further parts are added here: each gives the routes of its own."""
LIFESPANS: list[Callable[[Context], AbstractAsyncContextManager[Any]]] = [mcp.lifespan]
"""What runs beside the routes from the start to the end."""


def context_of(service: Service, settings: ServerSettings) -> Context:
    """What the parts share. Raises InvalidInput or InvalidSetting for a file of keys that cannot be used, MissingDependency."""
    closing = list[Callable[[], object]]()
    if settings.telemetry:
        closing.append(telemetry.start(service, settings.telemetry_content).shutdown)
    keys = None if settings.keys is None else Keys(settings.keys, service.prices)
    if keys is not None:
        closing.append(keys.close)
    room = Room(settings.slots or service.slots, settings.waiting)
    metrics = Metrics(service, room)
    drifts = Drifts(service, metrics.registry)
    judging = None
    if settings.feedback is not None:
        judging = Feedback(service, settings.feedback, settings.feedback_content, metrics.registry)
        closing.append(judging.close)
    links = Links(settings.link_seconds)
    context = Context(service, settings, room, links, metrics, drifts, keys, judging, closing=closing)
    return replace(context, tools=mcp.tools_of(context))


def create_app(context: Context) -> Starlette:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for close in context.closing:
                stack.callback(close)
            for part in LIFESPANS:
                await stack.enter_async_context(part(context))
            yield

    origins = context.settings.origins
    carried = [Middleware(telemetry.Carried)] if context.settings.telemetry else []
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["Retry-After"],
    )
    return Starlette(
        routes=[route for part in PARTS for route in part(context)],
        middleware=[*([cors] if origins else ()), Middleware(Access, context=context), *carried],
        exception_handlers={HTTPException: _not_found},
        lifespan=lifespan,
    )


async def _not_found(_: Request, error: Exception) -> Response:
    """Of Starlette's own: no such page, or not with this method."""
    assert isinstance(error, HTTPException)
    refused = Refusal(error.status_code, error.detail, headers=error.headers)
    return refused.response()

"""Whether the server lives, whether it takes questions, and its numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.serving.context import Context


def routes(context: Context) -> Sequence[BaseRoute]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        closing = context.room.closing
        return JSONResponse({"status": "stopping" if closing else "ready"}, 503 if closing else 200)

    async def metrics(_: Request) -> Response:
        content, kind = context.metrics.text()
        return Response(content, headers={"content-type": kind})

    return [Route("/healthz", health), Route("/readyz", ready), Route("/metrics", metrics)]

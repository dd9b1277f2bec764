"""``GET /``: the live page, three files without a build step, which may load nothing but themselves."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gnothi.serving.context import Context

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_FILES = {
    "/": ("index.html", "text/html"),
    "/static/page.css": ("page.css", "text/css"),
    "/static/page.js": ("page.js", "text/javascript"),
}


def routes(_: Context) -> Sequence[BaseRoute]:
    return [_route(path, *file) for path, file in _FILES.items()]


def _route(path: str, name: str, kind: str) -> Route:
    content = files("gnothi.serving").joinpath("page", name).read_bytes()
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}

    async def file(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return Route(path, file)

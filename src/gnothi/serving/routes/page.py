"""What a browser opens: the live page (``GET /``: three files without a build step), a passage by its signed link, and reports
of runs (``GET /v1/runs`` lists them with links; ``GET /runs/{name}`` is the page that `gnothi report` writes)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.retrieval.terms import as_text
from gnothi.runs.journal import CONFIG
from gnothi.serving.context import Context

_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}"
    "p{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_TEXT_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def page(title: str, text: str, status: int = 200) -> HTMLResponse:
    content = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1><p>{escape(text)}</p></main></body></html>"
    )
    return HTMLResponse(content, status, {"content-security-policy": _TEXT_POLICY, "cache-control": "private, no-store"})


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_FILES = {
    "/": ("index.html", "text/html"),
    "/static/page.css": ("page.css", "text/css"),
    "/static/page.js": ("page.js", "text/javascript"),
}


def routes(context: Context) -> Sequence[BaseRoute]:
    return [*(_route(path, *file) for path, file in _FILES.items()), *_passages(context), *_runs(context)]


def _route(path: str, name: str, kind: str) -> Route:
    content = files("gnothi.serving").joinpath("page", name).read_bytes()
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}

    async def file(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return Route(path, file)


def _passages(context: Context) -> list[BaseRoute]:
    async def passage(request: Request) -> Response:
        if not signed(context, request):
            return page("No such link", "This link is not valid, or not any more. Ask again for a new one.", 403)
        cited = context.links.find(request.path_params["name"])
        if cited is None:
            return page("Forgotten", "The server does not remember this passage any more. Ask again for a new link.", 404)
        known = [f"{key}: {as_text(one)}" for key, one in cited.metadata.items()]
        return page(cited.title or cited.id, "\n".join([cited.text, *([""] if known else []), *known]))

    return [Route("/passages/{name}", passage)]


def signed(context: Context, request: Request) -> bool:
    """Whether the request's link is ours and not too old."""
    parameters = request.query_params
    return context.links.valid(request.url.path, parameters.get("expires", ""), parameters.get("signature", ""))


_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The report's scripts are in the page; in a sandbox they cannot ask the server anything."""


def _runs(context: Context) -> list[BaseRoute]:
    reports = _Reports()

    async def listed(request: Request) -> Response:
        base, runs = context.base(request), folders(context.settings.runs)
        data = [{"name": name, "url": base + context.links.signed(f"/runs/{name}")} for name in sorted(runs)]
        return JSONResponse({"object": "list", "data": data})

    async def report(request: Request) -> Response:
        if context.keys is not None and not signed(context, request):
            return page("No such link", "This link is not valid, or not any more. GET /v1/runs gives a new one.", 403)
        folder = folders(context.settings.runs).get(request.path_params["name"])
        if folder is None:
            return page("No such run", "There is no run of this name here.", 404)
        return HTMLResponse(await reports.of(folder), headers={"content-security-policy": _REPORT_POLICY})

    return [Route("/v1/runs", listed), Route("/runs/{name}", report)]


def folders(runs: Path | None) -> dict[str, Path]:
    """The runs in the folder by name. What a client names is looked up here and nowhere else; what leads out of the folder is
    left out."""
    if runs is None or not runs.is_dir():
        return {}
    top = runs.resolve()
    inside = (one for one in runs.iterdir() if (one / CONFIG).is_file())
    return {one.name: one for one in inside if one.resolve().parent == top}


class _Reports:
    """Made one at a time, on a thread, and kept until the run grows."""

    def __init__(self) -> None:
        self._pages: dict[Path, tuple[int, str]] = {}
        self._making = asyncio.Lock()

    async def of(self, folder: Path) -> str:
        async with self._making:
            rows = folder / "rows.jsonl"
            stamp = rows.stat().st_mtime_ns if rows.exists() else 0
            if self._pages.get(folder, (None, ""))[0] != stamp:
                self._pages[folder] = stamp, await asyncio.to_thread(_render, folder)
            return self._pages[folder][1]


def _render(folder: Path) -> str:
    from gnothi.report.page.runs import render
    from gnothi.report.sections import load_runs

    return render(load_runs([folder]))

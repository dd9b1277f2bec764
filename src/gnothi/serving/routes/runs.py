"""Reports of runs: ``GET /v1/runs`` lists them, with links; ``GET /runs/{name}`` is the page that `gnothi report` writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.runs.journal import CONFIG
from gnothi.serving.context import Context
from gnothi.serving.html import page
from gnothi.serving.routes.passages import signed

POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The report's scripts are in the page; in a sandbox they cannot ask the server anything."""


def routes(context: Context) -> Sequence[BaseRoute]:
    reports = _Reports()

    async def listed(request: Request) -> Response:
        base, found = context.base(request), folders(context.settings.runs)
        data = [{"name": name, "url": base + context.links.signed(f"/runs/{name}")} for name in sorted(found)]
        return JSONResponse({"object": "list", "data": data})

    async def report(request: Request) -> Response:
        if context.keys is not None and not signed(context, request):
            return page("No such link", "This link is not valid, or not any more. GET /v1/runs gives a new one.", 403)
        folder = folders(context.settings.runs).get(request.path_params["name"])
        if folder is None:
            return page("No such run", "There is no run of this name here.", 404)
        return HTMLResponse(await reports.of(folder), headers={"content-security-policy": POLICY})

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
        self._kept: dict[Path, tuple[int, str]] = {}
        self._making = asyncio.Lock()

    async def of(self, folder: Path) -> str:
        async with self._making:
            rows = folder / "rows.jsonl"
            stamp = rows.stat().st_mtime_ns if rows.exists() else 0
            if self._kept.get(folder, (None, ""))[0] != stamp:
                self._kept[folder] = stamp, await asyncio.to_thread(_render, folder)
            return self._kept[folder][1]


def _render(folder: Path) -> str:
    from gnothi.report.page.runs import render
    from gnothi.report.sections import load_runs

    return render(load_runs([folder]))

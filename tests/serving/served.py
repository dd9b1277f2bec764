"""A real server on loopback, in the test's own event loop: uvicorn, the application, set-ups over a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from gnothi.config import Given, Settings
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.serving.app import context_of
from gnothi.serving.context import Context
from gnothi.serving.server import Server, bound, create_server
from gnothi.serving.service import open_service
from gnothi.serving.settings import ServerSettings
from gnothi.serving.setups import plans
from gnothi.session.plan import Request
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Generation, Prompt
from tests.command_line import script
from tests.patience import PATIENCE


@dataclass
class Served:
    """``http`` asks it, below its address."""

    url: str
    context: Context
    server: Server
    http: httpx2.AsyncClient

    async def chat(self, text: str, model: str = "gnothi/seakr", **more: Any) -> httpx2.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        return await self.http.post("/v1/chat/completions", json=body)


@asynccontextmanager
async def served(
    model: LanguageModel | str | None = None,
    methods: tuple[str, ...] = ("seakr", "rag", "direct"),
    settings: dict[str, Any] | None = None,
    index: Any = None,
    **server: Any,
) -> AsyncIterator[Served]:
    others = asyncio.all_tasks()
    model = model or Scripted(script, name="lab", thresholds={"gram": -6.0})
    given = Settings({key: Given(value, "the test") for key, value in (settings or {}).items()})
    found = plans(Request(methods, model=model, index=index, settings=given))
    chosen = ServerSettings(**{"port": 0, **server})
    async with contextlib.AsyncExitStack() as stack:
        taken = stack.enter_context(bound(chosen))
        service = await stack.enter_async_context(open_service(found, chosen.follow_ups))
        context = context_of(service, chosen)
        listening = asyncio.Event()
        running = create_server(context, taken, lambda _: listening.set())
        running.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
        task = asyncio.ensure_future(running.serve())
        try:
            await asyncio.wait({task, asyncio.ensure_future(listening.wait())}, return_when=asyncio.FIRST_COMPLETED)
            async with httpx2.AsyncClient(base_url=running.address, timeout=PATIENCE) as http:
                yield Served(running.address, context, running, http)
        finally:
            running.should_exit = True
            await task
    # sse-starlette, which mcp streams with for its older clients, keeps one watcher for each loop.
    left = {one for one in asyncio.all_tasks() - others if "_shutdown_watcher" not in repr(one)} - {asyncio.current_task()}
    assert not left, "the server left tasks running"


class Slow(Wrapper):
    """``asked`` calls so far, of which ``dropped`` were cancelled; ``go`` lets all of them go on. With ``broken`` they fail."""

    def __init__(self, broken: Exception | None = None) -> None:
        super().__init__(Scripted(script, name="lab", thresholds={"gram": -6.0}))
        self.go = asyncio.Event()
        self.asked = self.dropped = 0
        self._broken = broken

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        self.asked += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        if self._broken is not None:
            raise self._broken
        return await super().generate(prompt, decoding)

"""A real HTTP server on the loopback interface around ``Api``, in a thread of its own, that can be told to misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.models.openai_api import Api, BadRequest
from tests.patience import until

Fault = Literal["429", "429 after", "500", "503 html", "timeout", "drop", "cut", "json", "deep", "long", "empty"]
FAULTS: tuple[Fault, ...] = ("429", "429 after", "500", "503 html", "timeout", "drop", "cut", "json", "deep", "long", "empty")
UNBILLED = frozenset({"timeout", "drop", "cut", "json", "deep", "long"})
"""Faults after the work was done, and charged, whose bill does not arrive."""


@dataclass
class Server:
    """``requests`` lists what came in: path, body, headers. ``fault`` says for each number of a POST what goes wrong, and
    ``fault_of`` for each body; ``on_silence`` hears of bodies that get no reply. ``together``: so many requests have to be
    there before the first is answered."""

    api: Api
    fault: Callable[[int], Fault | None] = lambda _: None
    fault_of: Callable[[dict[str, Any]], Fault | None] = lambda _: None
    on_silence: Callable[[dict[str, Any]], None] = lambda _: None
    together: int = 0
    key: str | None = None
    requests: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""
    moved: str = ""
    """The address that requests are sent on to, with their paths, by the status ``moved_by``."""
    moved_by: int = 307
    unbilled: int = 0
    most_at_once: int = 0
    _at_once: int = 0
    _posts: int = 0

    @property
    def posts(self) -> list[dict[str, Any]]:
        return [body for _, body, _ in self.requests if body]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; False when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split()
        body = json.loads(content) if content else {}
        self.requests.append((path, body, headers))
        fault = None
        if method == "POST":
            self._posts += 1
            fault = self.fault(self._posts) or self.fault_of(body)
        if fault is not None:
            self.faults.append(fault)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._respond(path, body, headers, reader, writer, fault)
        finally:
            self._at_once -= 1

    async def _respond(
        self,
        path: str,
        body: dict[str, Any],
        headers: dict[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        fault: Fault | None,
    ) -> bool:
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            said = f"Incorrect API key provided: {headers.get('authorization')}"
            return _send(writer, 401, {"error": {"message": said, "code": "invalid_api_key"}})
        if self.moved:
            return _write(writer, self.moved_by, b"", extra=f"Location: {self.moved}{path}\r\n")
        if fault in ("429", "429 after"):
            extra = "Retry-After: 0.05\r\n" if fault == "429 after" else ""
            return _send(writer, 429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, extra)
        if fault == "500":
            return _send(writer, 500, {"error": {"message": "The server had an error"}})
        if fault == "503 html":
            return _write(writer, 503, b"<html>Service Unavailable</html>", "text/html")
        await until(lambda: self.most_at_once >= self.together)
        try:
            reply = await self.api.answer(path, body)
        except BadRequest as error:
            return _send(writer, error.status, error.body)
        if fault in UNBILLED and "usage" in reply:
            self.unbilled += reply["usage"]["total_tokens"]
        if fault == "timeout":
            self.on_silence(body)
            await reader.read()  # until the client has had enough
            return False
        if fault == "drop":
            return False
        if isinstance(reply, bytes):  # no JSON at all
            return _write(writer, 200, reply, "text/html")
        content = json.dumps(reply).encode()
        if fault == "cut":
            _write(writer, 200, content, cut=len(content) // 2)
            await writer.drain()
            return False
        if fault == "json":
            return _write(writer, 200, content[: len(content) // 2])
        if fault == "deep":
            return _write(writer, 200, b"[" * 200_000)
        if fault == "long":
            return _write(writer, 200, content + b" " * 30_000_000)
        if fault == "empty":
            return _send(writer, 200, {**reply, "choices": []})
        return _write(writer, 200, content)


def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any], extra: str = "") -> bool:
    return _write(writer, status, json.dumps(body).encode(), extra=extra)


def _write(
    writer: asyncio.StreamWriter,
    status: int,
    content: bytes,
    kind: str = "application/json",
    extra: str = "",
    cut: int | None = None,
) -> bool:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
    writer.write(head.encode() + content[:cut])
    return True


@contextmanager
def nobody() -> Iterator[str]:
    """An address with its /v1 that nobody else can take, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread until the block ends; ``server.url`` is the address with its /v1."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=2**22)

    async def stop(listening: asyncio.Server) -> None:
        listening.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    listening = asyncio.run_coroutine_threadsafe(start(), loop).result()
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(stop(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

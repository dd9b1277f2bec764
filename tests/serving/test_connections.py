"""More connections than files, and clients that send or read a byte now and then: others are answered throughout."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from gnothi.errors import InvalidSetting
from gnothi.serving import connections
from gnothi.serving.connections import Door, allowed
from tests.command_line import KNOWN
from tests.messages import refused
from tests.patience import until
from tests.serving.served import Served, Slow, served

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"model": "direct", "messages": [{"role": "user", "content": KNOWN}]}).encode()
LAST = b"Connection: close\r\n"
LENGTH = b"Content-Length: " + str(len(BODY)).encode() + b"\r\n\r\n"


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)


async def idle(url: str, many: int, first: bytes = b"") -> list[socket.socket]:
    """So many connections that have sent this and send no more; they stay as long as the server lets them."""

    def one() -> socket.socket:
        found = connected(url)
        with suppress(OSError):  # it had to make room already
            found.sendall(first)
        return found

    return [await asyncio.to_thread(one) for _ in range(many)]


async def said(client: socket.socket) -> bytes:
    """All that comes until the server closes."""

    def read() -> bytes:
        found = b""
        with suppress(ConnectionResetError):
            while piece := client.recv(65536):
                found += piece
        client.close()
        return found

    return await asyncio.to_thread(read)


def close(clients: list[socket.socket]) -> None:
    for one in clients:
        one.close()


def open_ones(server: Served) -> int:
    return server.server.connections.open


@pytest.mark.parametrize("first", [b"", b"P", HEAD, HEAD + LENGTH, HEAD + LENGTH + BODY[:-1]], ids=range(5))
async def test_who_does_not_ask_makes_room_for_who_does(first: bytes) -> None:
    async with served(methods=("direct",), connections=4, client_timeout=600) as server:
        holding = []
        for _ in range(2):
            holding += await idle(server.url, 5, first)
            async with httpx2.AsyncClient(base_url=server.url, timeout=20) as http:
                answer = await http.post("/v1/chat/completions", content=BODY)
                assert answer.json()["choices"][0]["message"]["content"] == "Ada Bram"
        await until(lambda: open_ones(server) <= 4)
        close(holding)
        await until(lambda: open_ones(server) == 0)
        assert (await server.chat(KNOWN, "direct")).status_code == 200


async def test_where_all_are_asking_who_comes_is_refused() -> None:
    model = Slow()
    async with served(model, ("direct",), connections=4, slots=8) as server:
        asking = await idle(server.url, 4, HEAD + LAST + LENGTH + BODY)
        await until(lambda: model.asked == 4)
        refused = await idle(server.url, 40, HEAD + LENGTH + BODY)
        for one in refused:
            head, _, body = (await said(one)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: ")
            assert json.loads(body)["error"]["code"] == "overloaded"
        model.go.set()
        assert [b"Ada Bram" in await said(one) for one in asking] == [True] * 4
        await until(lambda: open_ones(server) == 0)
        assert (await server.chat(KNOWN, "direct")).status_code == 200


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"", b""),
        (HEAD, b"HTTP/1.1 408 Request Timeout"),
        (HEAD + LENGTH, b"HTTP/1.1 408 Request Timeout"),
        (HEAD + LENGTH + BODY[:-1], b"HTTP/1.1 408 Request Timeout"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /", b"HTTP/1.1 200 OK"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
    ],
)
async def test_a_request_has_so_long_however_it_is_sent(first: bytes, told: bytes) -> None:
    async with served(methods=("direct",), client_timeout=0.2) as server:
        (client,) = await idle(server.url, 1, first)

        async def byte_by_byte() -> None:
            with suppress(OSError):
                while True:
                    await asyncio.sleep(0.02)
                    client.send(b"x")

        sending = asyncio.ensure_future(byte_by_byte()) if first[:1] == b"P" and not first.endswith(BODY[-9:-1]) else None
        found = await said(client)
        assert found.startswith(told)
        assert bool(found) == bool(told)
        if sending is not None:
            sending.cancel()
        await until(lambda: open_ones(server) == 0)


async def test_who_does_not_read_is_left() -> None:
    async with served(methods=("direct",), client_timeout=0.2) as server:
        client = connected(server.url)
        await until(lambda: open_ones(server) == 1)
        client.settimeout(0)
        with suppress(OSError):
            while open_ones(server):
                with suppress(BlockingIOError):
                    client.send(b"GET /static/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
                await asyncio.sleep(0)
        await until(lambda: open_ones(server) == 0)
        client.close()
        assert (await server.chat(KNOWN, "direct")).status_code == 200


# --- few files -------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def limited(files: int) -> AsyncIterator[tuple[str, int, asyncio.subprocess.Process]]:
    arguments = ["-m", "tests.serving.limited", str(files)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    url, most = (await process.stdout.readline()).decode().split()
    try:
        yield url, int(most), process
    finally:
        _, told = await process.communicate(b"")
        assert b"Traceback" not in told
        assert process.returncode == 0


async def answered(url: str) -> int:
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        return (await http.post("/v1/chat/completions", content=BODY)).status_code


@pytest.mark.parametrize(
    ("files", "many"), [(80, 120), pytest.param(1024, 1100, marks=pytest.mark.long)], ids=["few", "as many as in the issue"]
)
async def test_more_connections_than_files(files: int, many: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]) if before[1] > 0 else 4096, before[1]))
    try:
        async with limited(files) as (url, most, process):
            assert 0 < most < files
            holding: list[socket.socket] = []
            slow: list[socket.socket] = []
            for _ in range(4):
                holding += await idle(url, many // 4)
                slow += await idle(url, 5, HEAD)
                for one in slow:
                    with suppress(OSError):
                        one.send(b"x")
                assert await answered(url) == 200
            assert len(holding) == many
            close([*holding, *slow])
            assert [await answered(url) for _ in range(5)] == [200] * 5
            assert process.returncode is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_where_no_file_is_left_who_comes_is_refused_and_the_next_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else has taken them, which no limit on connections hinders."""
    lacking = 0
    real: Callable[[Door], Any] = Door._next

    def fails(door: Door) -> Any:
        nonlocal lacking
        if lacking and door._spare is not None:
            lacking -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(door)

    monkeypatch.setattr(Door, "_next", fails)
    async with served(methods=("direct",)) as server:
        lacking = 3
        refused = await idle(server.url, 3, HEAD)
        assert [(await said(one))[:12] for one in refused] == [b"HTTP/1.1 503"] * 3
        assert await answered(server.url) == 200


def test_as_many_as_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 768), (256, 128), (3, 2), (1_000_000, 4096), (None, 4096)):
        monkeypatch.setattr(connections, "_files", lambda files=files: files)
        assert allowed(None) == most
        assert allowed(1) == 1
    monkeypatch.setattr(connections, "_files", lambda: 1024)
    assert allowed(768) == 768
    with refused(InvalidSetting):
        allowed(769)

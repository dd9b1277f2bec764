"""Tools over MCP, asked by its own client: in memory, over HTTP with a key, over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from sse_starlette.sse import AppStatus

from gnothi.serving import keys
from gnothi.serving.tools import Tools
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt
from tests.command_line import KNOWN, covered_fact, script
from tests.patience import PATIENCE, until
from tests.serving.served import Served, served

MODES = ("auto", "legacy")
"""The protocol of today, and its predecessor."""


class Heard(list[str]):
    """Progress as a client hears it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(self) + 1, None)
        self.append(message or "")


async def check(client: Any) -> None:
    """What every transport has to give."""
    _, true, question = covered_fact()
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"ask", "know", "search"}
    assert "gnothi/seakr" in tools["ask"].description
    assert tools["ask"].output_schema["required"]
    assert {"items": {"type": "string"}, "type": "array"} in tools["ask"].input_schema["properties"]["filters"]["anyOf"]
    heard = Heard()
    answer = await client.call_tool("ask", {"question": question}, progress_callback=heard)
    found = answer.structured_content
    assert (answer.is_error, found["answer"], found["from_memory"]) == (False, true, False)
    assert found["sources"][0]["title"]
    assert [line.partition(":")[0] for line in heard] == [line.partition(":")[0] for line in found["decisions"]]
    assert [line.partition(":")[0] for line in heard][:3] == ["draft", "gate", "search"]
    known = (await client.call_tool("know", {"question": KNOWN})).structured_content
    assert (known["knows"], known["draft"], known["threshold"]) == (True, "Ada Bram", -6.0)
    hits = (await client.call_tool("search", {"query": question, "k": 2})).structured_content
    assert len(hits["passages"]) == 2
    assert hits["passages"][0]["id"] == found["sources"][0]["id"]


@pytest.mark.parametrize("mode", MODES)
async def test_in_memory(mode: str) -> None:
    async with served() as server, mcp.Client(Tools(server.context.service).server, mode=mode) as client:
        await check(client)
        (source,) = (await client.call_tool("ask", {"question": covered_fact()[2]})).structured_content["sources"]
        assert source["url"] is None  # nobody would answer there


@pytest.mark.parametrize("mode", MODES)
async def test_over_http(mode: str) -> None:
    async with served() as server, mcp.Client(f"{server.url}/mcp", mode=mode) as client:
        await check(client)
        (source,) = (await client.call_tool("ask", {"question": covered_fact()[2]})).structured_content["sources"]
        assert source["url"].startswith(f"{server.url}/passages/")


async def test_a_server_that_was_stopped_before_in_this_process_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AppStatus, "should_exit", True)
    async with served() as server, mcp.Client(f"{server.url}/mcp", mode="legacy") as client:
        await check(client)


START = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
EVERY = "application/json, text/event-stream"


ACCEPTED = {
    "application/json": "application/json",
    "application/json;q=0.9": "application/json",
    "application/*": "application/json",
    "": "application/json",
    EVERY: "text/event-stream",
    "text/event-stream": "text/event-stream",
    "*/*": "text/event-stream",
}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_a_stream_for_who_reads_one_and_json_for_others(path: str) -> None:
    async with served(methods=("direct",)) as server:
        for accept, kind in ACCEPTED.items():
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
            found = await server.http.post(path, json=body, headers={"accept": accept})
            assert (found.status_code, found.headers["content-type"].partition(";")[0]) == (200, kind), accept
            assert '"serverInfo"' in found.text
            call = {"name": "ask", "arguments": {"question": KNOWN, "model": "direct"}}
            body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            found = await server.http.post(path, json=body, headers={"accept": accept})
            assert "Ada Bram" in found.text, accept
            if kind == "application/json":
                assert found.json()["id"] == 2


async def test_who_reads_neither_is_refused() -> None:
    async with served(methods=("direct",)) as server:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
        assert (await server.http.post("/mcp", json=body, headers={"accept": "text/html"})).status_code == 406


async def test_what_is_refused_is_told() -> None:
    async with served() as server, mcp.Client(f"{server.url}/mcp") as client:
        for tool, arguments, said in (
            ("ask", {"question": "  "}, "expected a question that is not empty"),
            ("ask", {"question": "x" * 8001}, "got a question of 8,001 characters"),
            ("ask", {"question": "Who?", "model": "nix"}, "unknown model"),
            ("know", {"question": "Who?", "model": "direct"}, "has no gate"),
            ("search", {"query": "x", "k": 1000}, "less than or equal to 100"),
            ("ask", {"question": "Who?", "filters": {"lang": "de"}}, "expected KEY=VALUE, as in source=handbook.pdf"),
            ("search", {"query": "x", "filters": [7]}, "expected KEY=VALUE, as in source=handbook.pdf"),
        ):
            found = await client.call_tool(tool, arguments)
            assert found.is_error
            assert said in str(found.content[0])


async def test_what_fails_inside_is_not_told() -> None:
    def broken(_: Prompt) -> Reply:
        raise RuntimeError("/secret/place")

    async with served(Scripted(broken, name="lab")) as server, mcp.Client(f"{server.url}/mcp") as client:
        found = await client.call_tool("ask", {"question": "Who?"})
        assert found.is_error
        assert "could not be answered" in str(found.content[0])
        assert "secret" not in str(found)


async def test_a_key_lets_in_and_its_limit_holds(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    key = keys.add(file, "one", per_minute=1)
    async with served(keys=file) as server:
        assert (await server.http.post("/mcp", json={})).status_code == 401
        async with with_key(server, key) as client:
            assert not (await client.call_tool("ask", {"question": KNOWN})).is_error
            refused = await client.call_tool("know", {"question": KNOWN})
            assert refused.is_error
            assert "questions a minute" in refused.content[0].text


@asynccontextmanager
async def with_key(server: Served, key: str) -> AsyncIterator[Any]:
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        transport: AbstractAsyncContextManager[Any] = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_leaves_ends_the_work(mode: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    never = asyncio.Event()

    class Waits(Scripted):
        async def sample(self, *_: Any, **__: Any) -> Any:
            begun.set()
            try:
                await never.wait()
            except asyncio.CancelledError:
                ended.set()
                raise

        generate = sample

    async with served(Waits(script, name="lab", thresholds={"gram": -6.0})) as server:

        async def ask() -> None:
            async with mcp.Client(f"{server.url}/mcp", mode=mode) as client:
                await client.call_tool("ask", {"question": KNOWN})

        asking = asyncio.ensure_future(ask())
        await until(begun.is_set)
        asking.cancel()
        await until(ended.is_set)
        await until(lambda: not server.context.room.under_way)


@pytest.mark.slow
async def test_over_stdin_and_stdout(tmp_path: Path) -> None:
    """The command itself, with the laboratory's model."""
    started = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "gnothi", "mcp"], cwd=tmp_path, env=dict(os.environ)
    )
    async with mcp.Client(mcp.stdio_client(started)) as client:
        question = covered_fact()[2]
        heard = Heard()
        found = await client.call_tool("ask", {"question": question}, progress_callback=heard)
        assert not found.is_error
        assert found.structured_content["model"] == "gnothi/seakr"
        assert [line.partition(":")[0] for line in heard][:2] == ["draft", "gate"]

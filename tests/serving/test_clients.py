"""Clients of others, in environments of their own (`make test-clients` makes them): openai-js, MCP's JS SDK, LangChain."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import covered_fact
from tests.serving.served import served

HERE = Path(__file__).parent / "clients"
INSTALLED = Path(os.environ.get("CLIENTS_FOLDER", "/nowhere"))
pytestmark = pytest.mark.slow


async def said(*command: str | Path) -> Any:
    """What the client prints, after it has asked a server the question that a passage answers."""
    async with served() as server:
        process = await asyncio.create_subprocess_exec(
            *command, server.url, covered_fact()[2], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.skipif(not (INSTALLED / "node_modules").is_dir(), reason="openai-js is not installed: make test-clients")
async def test_openai_js() -> None:
    script = INSTALLED / "openai.mjs"  # beside node_modules, where node looks for them
    script.write_text((HERE / "openai.mjs").read_text())
    found = await said("node", script)
    expected = f"{covered_fact()[1]} [1]"
    assert [found[key] for key in ("chat", "streamed", "helper", "response", "deltas", "final")] == [expected] * 6
    assert found["kinds"] == ["reasoning", "file_search_call", "message"]
    assert (found["cited"], found["refused"]) == ("url_citation", [404, "model_not_found"])


@pytest.mark.skipif(not (INSTALLED / "node_modules").is_dir(), reason="MCP's JS SDK is not installed: make test-clients")
async def test_mcp_js() -> None:
    script = INSTALLED / "mcp.mjs"
    script.write_text((HERE / "mcp.mjs").read_text())
    found = await said("node", script)
    subject, true, _ = covered_fact()
    assert (found["tools"], found["answer"], found["knows"], found["title"]) == (
        ["ask", "know", "search"],
        true,
        False,
        subject,
    )
    assert found["progress"][:3] == ["draft", "gate", "search"]
    assert "unknown model: got 'nobody'" in found["refused"]


@pytest.mark.skipif(not (INSTALLED / "langchain").is_dir(), reason="LangChain is not installed: make test-clients")
async def test_langchain() -> None:
    found = await said(INSTALLED / "langchain" / "bin" / "python", HERE / "langchain_client.py")
    expected = f"{covered_fact()[1]} [1]"
    for mode in ("chat", "responses"):
        assert found[mode]["whole"] == found[mode]["streamed"] == expected
    assert "reasoning" in found["responses"]["blocks"]

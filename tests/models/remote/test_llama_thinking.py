"""llama.cpp's own server with SmolLM2 under a template that opens a block of thought. Run with `make test-llama`.

SmolLM2 was never taught to think; the template shows it how. What it says is worth nothing, only where it is taken for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gnothi.models.switches import Thinking
from tests.models.remote.real_server import THINKING, check_thoughts, running

if (SERVER := os.environ.get("LLAMA_SERVER")) is None or (FILE := os.environ.get("LLAMA_FILE")) is None:
    pytest.skip("no llama-server is named in LLAMA_SERVER: run `make test-llama`", allow_module_level=True)

pytestmark = [pytest.mark.llama, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["none", "deepseek", "deepseek-legacy"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llama")
    template = folder / "thinking.jinja"
    template.write_text(THINKING)
    flags = {"--model": str(FILE), "--alias": "smollm2", "--host": "127.0.0.1", "--ctx-size": "8192", "--parallel": "2"}
    flags |= {"--chat-template-file": str(template), "--reasoning-format": request.param}
    if threads := os.environ.get("OMP_NUM_THREADS"):
        flags |= {"--threads": threads, "--threads-batch": threads}
    command = [str(SERVER), "--jinja", *(part for pair in flags.items() for part in pair)]
    with running(lambda port: [*command, "--port", str(port)], folder / "server.log") as address:
        yield address


@pytest.mark.parametrize("thinking", ["off", "on"])
async def test_no_thought_is_an_answer(url: str, thinking: Thinking) -> None:
    await check_thoughts(url, thinking)

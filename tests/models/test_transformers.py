from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import torch

from gnothi.models.batched import Batched
from gnothi.models.engine import packed
from gnothi.models.rendering import Tagged
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import Network, NetworkConformance
from gnothi.types import Decoding, Prompt, Task
from tests.models.tiny import ARCHITECTURES, CONTEXT, backend_of, build_model

pytestmark = pytest.mark.usefixtures("one_trial")

# A network without windows, and one with; the library's own attention is the same for all others.
PLAIN = ("llama", "gemma3")
OTHERS = [name for name in ARCHITECTURES if name not in PLAIN]
CASES = [
    *((name, path) for name in PLAIN for path in ("repeated", "forked")),
    *(pytest.param((name, "forked"), marks=pytest.mark.slow) for name in OTHERS),
]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def reference(case: Any) -> Any:
    return build_model(case[0])


@pytest.fixture(scope="module")
def running(case: Any) -> Any:
    return build_model(case[0])


class TestConformance(NetworkConformance):
    @pytest.fixture
    def network(self, reference: Any, tokenizer: Any) -> Network:
        return Network(reference, tokenizer, Tagged(), CONTEXT)

    @pytest_asyncio.fixture
    async def model(self, running: Any, tokenizer: Any, case: Any) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        settings = ModelSettings(attention=case[1])
        model = Batched(TransformersBackend(running, tokenizer, Tagged(), name="tiny", settings=settings))
        yield model
        await model.aclose()


# How layers keep their weights: three to project, and one for all three, with a bias.
@pytest.fixture(scope="module", params=["llama", "gpt_neox"])
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def laid_out(architecture: str) -> Any:
    model = build_model(architecture)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_LARGE", 1)
        if not packed.pack(model):
            pytest.skip("this build of torch has no oneDNN, so weights stay as they are")
    return model


@pytest.mark.slow
class TestPackedWeights(NetworkConformance):
    """Weights laid out for the CPU's kernels, against a model that keeps the library's layers."""

    @pytest.fixture
    def network(self, architecture: str, tokenizer: Any) -> Network:
        return Network(build_model(architecture), tokenizer, Tagged(), CONTEXT)

    @pytest_asyncio.fixture
    async def model(self, laid_out: Any, tokenizer: Any) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = Batched(backend_of(laid_out, tokenizer))
        assert model.metadata["linear"] == "packed"
        yield model
        await model.aclose()


@pytest.fixture(scope="module")
def double() -> Any:
    return build_model("gemma3", torch.float64)


class TestDoublePrecision(NetworkConformance):
    """In double precision nothing is left but the algorithm: both paths agree with plain passes to ten digits."""

    @pytest.fixture
    def network(self, double: Any, tokenizer: Any) -> Network:
        return Network(double, tokenizer, Tagged(), CONTEXT, tolerance=1e-10)

    @pytest_asyncio.fixture
    async def model(self, tokenizer: Any, double: Any) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        backend = backend_of(double, tokenizer)
        model = Batched(backend)
        yield model
        await model.aclose()


async def test_the_decode_loop_is_counted(llama: Any, tokenizer: Any) -> None:
    settings = ModelSettings(max_rows=6)
    model = Batched(TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=settings))
    nothing = {
        "steps": 0,
        "fed_rows": 0,
        "samples": 0,
        "slots": 6,
        "read_tokens": 0,
        "reused_tokens": 0,
        "calls": 0,
        "under_way": 256,
    }
    assert model.statistics == nothing
    prompt = Prompt(Task("answer"), "who is w1 ?")
    samples = await model.sample(prompt, 3, Decoding(5, temperature=1.0, seed=1))
    # The prompt gives the first token of each, every other one took a step; samples that say the same share its row.
    lengths = [generation.generated_tokens for generation in samples.generations]
    ids = [tuple(token.id for token in generation.tokens) for generation in samples.generations]
    beginnings = {one[:end] for one in ids for end in range(1, len(one))}
    counted = {"steps": max(lengths) - 1, "samples": sum(lengths) - 3, "fed_rows": len(beginnings)}
    read = {"read_tokens": len(tokenizer(Tagged().render(prompt))["input_ids"]), "calls": 1}
    await asyncio.to_thread(counted_up, model, 1)
    assert model.statistics == nothing | counted | read
    await model.score(prompt, ["Yes", "No"])
    await asyncio.to_thread(counted_up, model, 2)
    assert model.statistics["read_tokens"] == 2 * read["read_tokens"]
    await model.aclose()


def counted_up(model: Batched, calls: int) -> None:
    """They are counted on the worker's thread, a moment after the reply is there."""
    while model.statistics["calls"] < calls:
        time.sleep(0.001)

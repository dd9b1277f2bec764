from __future__ import annotations

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
from tests.models.tiny import ARCHITECTURES, CONTEXT, build_model

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
        model = Batched(TransformersBackend(laid_out, tokenizer, Tagged(), name="tiny"))
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
        backend = TransformersBackend(double, tokenizer, Tagged(), name="tiny")
        model = Batched(backend)
        yield model
        await model.aclose()

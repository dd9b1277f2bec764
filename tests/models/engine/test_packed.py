"""Weights laid out once compute what the library's layers compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from gnothi.models.engine import packed
from gnothi.models.engine.packed import Packed, available, is_packed, pack
from tests.models.tiny import build_model

pytestmark = pytest.mark.skipif(not available(), reason="this build of torch has no oneDNN, so weights stay as they are")


@pytest.fixture(scope="module")
def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(96, 160)


@pytest.fixture(scope="module", params=[True, False], ids=["as if large", "small"])
def laid_out(request: pytest.FixtureRequest, layer: nn.Linear) -> Iterator[Packed]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(packed, "_LARGE", 1)
        yield Packed(layer)


@given(rows=st.integers(0, 600), seed=st.integers(0, 9))
def test_computes_what_the_layer_does(layer: nn.Linear, laid_out: Packed, rows: int, seed: int) -> None:
    given_rows = torch.randn(rows, 96, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        torch.testing.assert_close(laid_out(given_rows), layer(given_rows), rtol=1e-5, atol=1e-5)


@given(shape=st.lists(st.integers(1, 7), max_size=3))
def test_leading_dimensions_stay(laid_out: Packed, shape: list[int]) -> None:
    with torch.inference_mode():
        assert laid_out(torch.ones(*shape, 96)).shape == (*shape, 160)


def test_a_slice_is_read_as_it_lies(layer: nn.Linear, laid_out: Packed) -> None:
    rows = torch.randn(40, 3, 192, generator=torch.Generator().manual_seed(0))[:, 1, ::2]
    with torch.inference_mode():
        torch.testing.assert_close(laid_out(rows), layer(rows), rtol=1e-5, atol=1e-5)


def test_the_weight_can_be_asked_for(layer: nn.Linear, laid_out: Packed) -> None:
    assert torch.equal(laid_out.weight, layer.weight)


class TestAModel:
    @pytest.fixture(params=[True, False], ids=["as if large", "small"])
    def model(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
        if request.param:
            monkeypatch.setattr(packed, "_LARGE", 1)
        return build_model("llama", torch.float32)

    @pytest.mark.parametrize("rows", [1, 3, 16, 90, 200])
    def test_logits_are_the_same(self, model: Any, rows: int) -> None:
        tokens = torch.arange(4 * rows).view(rows, 4) % 30
        with torch.inference_mode():
            expected = model(tokens).logits
            assert pack(model)
            assert is_packed(model)
            torch.testing.assert_close(model(tokens).logits, expected, rtol=1e-5, atol=1e-5)

    def test_a_packed_model_holds_no_weight_twice(self, model: Any) -> None:
        assert pack(model)
        assert not [module for module in model.modules() if type(module) is nn.Linear]

    def test_layers_that_are_somebody_elses_stay(self, model: Any) -> None:
        hooked = next(module for module in model.modules() if type(module) is nn.Linear)
        hooked.register_forward_hook(lambda *_: None)
        assert pack(model)
        assert [module for module in model.modules() if type(module) is nn.Linear] == [hooked]

    def test_bfloat16_is_laid_out_too_where_it_is_computed(self, model: Any) -> None:
        tokens = torch.arange(40).view(10, 4) % 30
        with torch.inference_mode():
            expected = model.to(torch.bfloat16)(tokens).logits
            pack(model)
            difference = (model(tokens).logits - expected).norm() / expected.norm()
        assert float(difference) < 0.03

    def test_double_precision_stays(self, model: Any) -> None:
        assert not pack(model.to(torch.float64))
        assert not is_packed(model)

    def test_a_platform_without_the_operation_keeps_its_layers(self, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        class Missing(Packed):
            def __init__(self, linear: nn.Linear) -> None:
                raise NotImplementedError("no such operation here")

        monkeypatch.setattr(packed, "Packed", Missing)
        assert not pack(model)
        assert not is_packed(model)

    def test_a_platform_that_computes_something_else_keeps_its_layers(
        self, model: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Wrong(Packed):
            def forward(self, rows: torch.Tensor) -> torch.Tensor:
                return 1.01 * super().forward(rows)

        monkeypatch.setattr(packed, "Packed", Wrong)
        assert not pack(model)
        assert not is_packed(model)


def test_few_kernels_and_little_computed_in_vain() -> None:
    padded = {rows: packed._padded(rows) for rows in range(1, packed._MOST_ROWS + 1)}
    assert len(set(padded.values())) <= 25
    assert all(rows <= found <= packed._MOST_ROWS for rows, found in padded.items())
    assert all(found <= 1.25 * rows for rows, found in padded.items() if rows > 256)

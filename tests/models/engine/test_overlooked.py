"""What is in GGUF files and transformers does not read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGUFWriter, RopeScalingType
from torch import Tensor
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from gnothi.errors import ModelUnavailable
from gnothi.models import gguf
from tests.messages import refused
from tests.models import tiny_gguf
from tests.models.tiny import build_deep

Weights = dict[str, Tensor]
THETA = 500_000.0


class _Changed:
    """A model that is written with other weights."""

    def __init__(self, model: Any, change: Callable[[Weights], Weights]) -> None:
        self.config, self._weights = model.config, change(model.state_dict())

    def state_dict(self) -> Weights:
        return self._weights


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """The folder that a file of changed weights, or with another ``header``, becomes."""
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))

    def make(change: Callable[[Weights], Weights] = dict, header: Callable[[Any], object] = id) -> Path:
        class Writer(GGUFWriter):
            def add_rope_freq_base(self, _: float) -> None:
                super().add_rope_freq_base(THETA)
                header(self)

        monkeypatch.setattr(tiny_gguf, "GGUFWriter", Writer)
        monkeypatch.setattr(tiny_gguf, "build_model", lambda name: _Changed(build_deep(name), change))
        tiny_gguf.write(tmp_path / "tiny.gguf")
        return gguf.unpacked(tmp_path / "tiny.gguf", "tiny")

    return make


def more(**added: Tensor) -> Callable[[Weights], Weights]:
    return lambda weights: {**weights, **{key.replace("__", "."): one for key, one in added.items()}}


def without(part: str) -> Callable[[Weights], Weights]:
    return lambda weights: {key: one for key, one in weights.items() if part not in key}


@pytest.mark.parametrize(
    "change",
    [
        without("layers.2.mlp.up_proj"),
        without("model.norm"),
        more(model__layers__1__mlp__up_proj__weight=torch.ones(48, 16)),
        more(model__layers__7__mlp__up_proj__weight=torch.ones(48, 32)),
        more(odd__weight=torch.ones(48, 16)),
        more(rope_factors_long__weight=torch.ones(4)),
        more(rope_freqs__weight=torch.tensor([1.0, 2, 3, 4])),
    ],
)
def test_weights_that_are_missing_or_left_over(kept: Callable[..., Path], change: Any, tmp_path: Path) -> None:
    with refused(ModelUnavailable):
        kept(change)
    assert not gguf.listed()
    assert not list((tmp_path / "cache" / "models").glob("*/config.json"))


def test_a_head_that_is_the_embedding(kept: Callable[..., Path]) -> None:
    assert json.loads((kept(without("lm_head")) / "config.json").read_text())["tie_word_embeddings"]


@pytest.mark.parametrize("kind", [RopeScalingType.YARN, RopeScalingType.LINEAR])
def test_scaled_positions(kept: Callable[..., Path], kind: RopeScalingType) -> None:
    with refused(ModelUnavailable):
        kept(header=lambda writer: writer.add_rope_scaling_type(kind))


def test_positions_that_are_not_scaled(kept: Callable[..., Path]) -> None:
    place = kept(more(rope_freqs__weight=torch.ones(4)), lambda writer: writer.add_rope_scaling_type(RopeScalingType.NONE))
    assert json.loads((place / "config.json").read_text())["rope_parameters"]["rope_type"] == "default"


def test_frequencies_of_llama_3(kept: Callable[..., Path]) -> None:
    """As llama.cpp's converter computes what they are divided by."""
    factors = []
    for place in range(4):
        length = 2 * math.pi * THETA ** (place / 4)
        smooth = (8192 / length - 1) / 3
        factors.append(1.0 if length < 2048 else 32.0 if length > 8192 else 1 / ((1 - smooth) / 32 + smooth))
    assert 1 < factors[2] < 32
    folder = kept(more(rope_freqs__weight=torch.tensor(factors)))
    config = AutoConfig.from_pretrained(folder)
    found, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = torch.tensor([THETA ** (-place / 4) for place in range(4)])
    torch.testing.assert_close(found, plain / torch.tensor(factors), rtol=1e-5, atol=0)

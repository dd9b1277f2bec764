"""Loading onto GPUs is told here by what would be asked of the library; there is none where these tests run."""

from __future__ import annotations

from typing import Any

import pytest

from gnothi.errors import InvalidSetting, MissingDependency, ModelUnavailable
from gnothi.models import ModelSettings
from gnothi.models.engine import arguments
from gnothi.models.engine.arguments import load_arguments


def told(cuda: bool = True, **settings: Any) -> tuple[str, dict[str, Any]]:
    return load_arguments(ModelSettings(**settings), "some", cuda)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("cuda", "settings", "device", "dtype"),
    [
        (True, {}, "cuda", "bfloat16"),
        (False, {}, "cpu", "float32"),
        (True, {"device": "cpu"}, "cpu", "float32"),
        (False, {"dtype": "bfloat16"}, "cpu", "bfloat16"),
    ],
)
def test_device_and_precision(cuda: bool, settings: dict[str, Any], device: str, dtype: str) -> None:
    assert told(cuda, **settings) == (device, {"dtype": dtype, "trust_remote_code": False})


@pytest.mark.usefixtures("everything")
def test_quantised() -> None:
    _, given = told(quantize="8bit")
    assert given["quantization_config"] == {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert given["device_map"] == {"": 0}
    _, given = told(quantize="4bit", device_map="balanced", dtype="float32")
    assert given["device_map"] == "balanced"
    assert given["quantization_config"] == {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_compute_dtype": "float32",
    }


@pytest.mark.usefixtures("everything")
def test_the_library_understands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers.quantizers.auto import AutoQuantizationConfig

    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.49.0")
    made = AutoQuantizationConfig.from_dict(told(quantize="4bit")[1]["quantization_config"])
    assert (made.load_in_4bit, made.load_in_8bit) == (True, False)
    assert (made.bnb_4bit_quant_type, made.bnb_4bit_compute_dtype) == ("nf4", torch.bfloat16)


@pytest.mark.usefixtures("everything")
def test_spread() -> None:
    assert told(device_map="auto")[1]["device_map"] == "auto"


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("settings", [{"quantize": "4bit"}, {"device_map": "auto"}])
@pytest.mark.parametrize("where", [{"cuda": False}, {"cuda": True, "device": "cpu"}])
def test_without_a_gpu(settings: dict[str, Any], where: dict[str, Any]) -> None:
    (key,) = settings
    with pytest.raises(InvalidSetting, match=rf"'model\.{key}': got .* on the CPU, expected 'off': it needs a CUDA device"):
        told(**settings, **where)


@pytest.mark.parametrize(
    ("settings", "package", "extra"),
    [({"quantize": "8bit"}, "bitsandbytes", "quantized"), ({"device_map": "auto"}, "accelerate", "local")],
)
def test_without_the_package(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], package: str, extra: str) -> None:
    monkeypatch.setattr(arguments, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(MissingDependency, match=rf"'{package}'.*gnothi\[{extra}\]"):
        told(**settings)


def test_a_missing_device() -> None:
    with pytest.raises(ModelUnavailable, match="no CUDA device was found"):
        told(False, device="cuda")

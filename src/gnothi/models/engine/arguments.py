"""How a model is to be loaded: on which device, in which precision, spread or quantised."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from gnothi.errors import InvalidSetting, MissingDependency, ModelUnavailable
from gnothi.models.settings import ModelSettings


def load_arguments(settings: ModelSettings, name: str, cuda: bool) -> tuple[str, dict[str, Any]]:
    """The device, and what transformers' ``from_pretrained`` is told; it puts the model in its place itself where a
    ``device_map`` is among it. ``cuda``: whether there is such a device.

    Raises ModelUnavailable for a device that is not there, InvalidSetting for settings that need one, MissingDependency."""
    if settings.device == "cuda" and not cuda:
        raise ModelUnavailable(f"cannot load model {name!r} on cuda: no CUDA device was found. Use <--set model.device=cpu>.")
    device = settings.device if settings.device != "auto" else "cuda" if cuda else "cpu"
    precision = settings.dtype if settings.dtype != "auto" else "bfloat16" if device == "cuda" else "float32"
    arguments: dict[str, Any] = {"dtype": precision, "trust_remote_code": False}
    if settings.device_map != "off":
        _check("device_map", settings.device_map, device, "accelerate", "local")
        arguments["device_map"] = settings.device_map
    if settings.quantize != "off":
        _check("quantize", settings.quantize, device, "bitsandbytes", "quantized")
        arguments.setdefault("device_map", {"": int(os.environ.get("LOCAL_RANK", "0"))})  # of several that train together
        arguments["quantization_config"] = {"quant_method": "bitsandbytes", f"load_in_{settings.quantize}": True} | (
            {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": precision} if settings.quantize == "4bit" else {}
        )
    return device, arguments


def _check(key: str, value: str, device: str, package: str, extra: str) -> None:
    if device != "cuda":
        raise InvalidSetting(
            f"setting 'model.{key}': got {value!r} for a model on the CPU, expected 'off': it needs a CUDA device."
        )
    if find_spec(package) is None:
        raise MissingDependency(package, extra, f"setting 'model.{key}' = {value!r}")

"""The precision of a model where nobody names one: bfloat16 on a GPU, and on a processor that gains from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gnothi.models.engine.packed import Packed, available

# Below so many weights a model is quick in any precision, and float32 is what its thresholds were found with.
_LARGE = 1 << 25
# The trial: rows as of a prompt's piece, the best of so many times, the most of a layer that is tried, the gain that it takes.
_ROWS, _TIMES, _WIDEST, _GAIN = 256, 4, 4096, 0.75
# So many times as long as float32 is worth a word; less may be other work on the machine.
_LOSS = 2.0


def automatic(config: Any, device: str) -> str:
    """``bfloat16`` or ``float32`` for a model of this configuration."""
    if device == "cuda":
        return "bfloat16"
    shape = _large(config)
    if shape is None or not computes_bfloat16() or not available():
        return "float32"
    return "bfloat16" if seconds(shape, torch.bfloat16) < _GAIN * seconds(shape, torch.float32) else "float32"


def loss(config: Any, device: str) -> float | None:
    """How many times as long as in float32 a model of this configuration takes in bfloat16 on a processor that emulates it;
    None where that is little, or was not tried."""
    shape = _large(config) if device == "cpu" else None
    if shape is None or computes_bfloat16():
        return None
    # Such a processor has no packed product for it, so plain layers are compared.
    times = seconds(shape, torch.bfloat16, packed=False) / seconds(shape, torch.float32, packed=False)
    return times if times >= _LOSS else None


def _large(config: Any) -> tuple[int, int] | None:
    """The shape to try, of a model that is slow enough for the precision to matter."""
    text = config.get_text_config()
    hidden = getattr(text, "hidden_size", 0)
    wide = getattr(text, "intermediate_size", None) or 4 * hidden
    weights = getattr(text, "num_hidden_layers", 0) * hidden * (4 * hidden + 3 * wide)
    return None if weights < _LARGE else (min(hidden, _WIDEST), min(wide, _WIDEST))


def computes_bfloat16() -> bool:
    """Whether the processor has instructions for it (AVX-512 BF16 or AMX), so that it need not be emulated."""
    features: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(features.get("avx512_bf16") or features.get("amx_bf16"))


def seconds(shape: tuple[int, int], dtype: torch.dtype, *, packed: bool = True) -> float:
    """What a feed-forward block's two products take at best."""
    try:
        plain = (nn.Linear(*one, bias=False, dtype=dtype) for one in (shape, shape[::-1]))
        there, back = (Packed(layer) if packed else layer for layer in plain)
        rows = torch.zeros(_ROWS, shape[0], dtype=dtype)
        with torch.inference_mode():
            return min(_timed(lambda: back(there(rows))) for _ in range(_TIMES))
    except (AttributeError, RuntimeError):  # this build of torch has no such product
        return float("inf")


def _timed(work: Callable[[], Tensor]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun

"""Several processes that train one model together, as ``accelerate launch`` starts them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gnothi.errors import InvalidSetting


def count() -> int:
    """How many there are, 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def leads() -> bool:
    """Whether this is the only process, or the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def check() -> None:
    """Raise InvalidSetting for launches that give a process only a part of the weights: validation asks a whole model."""
    stage = os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "")
    fsdp = os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"
    if fsdp or stage == "3":
        raise InvalidSetting(
            f"the launch: got {'FSDP' if fsdp else 'DeepSpeed ZeRO stage 3'}, which spreads the weights themselves; expected "
            "plain processes, or DeepSpeed's stage 1 or 2, which spread gradients and the optimiser's state. Weights that do "
            "not fit on one GPU fit with <--set model.quantize=4bit>."
        )


def share(of: int, what: str) -> int:
    """What of a step falls to one process. Raises InvalidSetting where it cannot be divided."""
    number = count()
    if of % number:
        raise InvalidSetting(f"{what}: got {of}, expected a multiple of the {number} processes that were launched.")
    return of // number


def on_cuda(device: str = "auto") -> bool:
    """Whether a model whose setting ``device`` is that runs on a GPU; of several each process takes its own."""
    import torch

    available = device != "cpu" and torch.cuda.is_available()
    if available and "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return available


def agreed(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The first process's figures, for all: by them each decides when training is over, and GPUs differ in the last digit."""
    if count() == 1:
        return dict(figures)
    from accelerate.utils import broadcast_object_list

    held = [dict(figures)]
    broadcast_object_list(held)
    return held[0]

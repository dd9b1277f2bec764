"""Rotary frequencies that depend on the longest position of a pass (longrope), made a property of the text instead.

The library turns every token of a pass with the frequencies for long texts as soon as one position lies beyond the length that
the model was first trained on. So a short prompt beside a long one would be another prompt. Here a pass is of short texts or of
long ones, by ``long``, and never of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_NAME = "original_max_position_embeddings"


class Frequencies:
    """``limit``: the most tokens of a short text; None where frequencies do not depend on the length."""

    def __init__(self, model: nn.Module) -> None:
        self.long = False
        self.limit: int | None = None
        limits = sorted(set(_limits(getattr(model, "config", None))))
        modules: Iterator[Any] = model.modules()
        for module in modules if limits else ():
            if "rotary" not in type(module).__name__.lower():
                continue
            if hasattr(module, "by_length"):  # the model was another backend's before
                module.by_length = self
                self.limit = limits[0]
            elif _depends(module, limits[0]):
                self.limit = limits[0]
                _control(module, limits[0], self)

    def is_long(self, tokens: int) -> bool:
        return self.limit is not None and tokens > self.limit

    @contextmanager
    def turned(self, long: bool) -> Iterator[None]:
        """Inside, passes are of long texts or of short ones."""
        before, self.long = self.long, long
        try:
            yield
        finally:
            self.long = before


def _limits(config: Any) -> Iterator[int]:
    """Every original length that a configuration names, nested ones included."""
    settings = config.to_dict() if hasattr(config, "to_dict") else {}
    waiting = [settings]
    while waiting:
        values = waiting.pop()
        for key, value in values.items():
            if isinstance(value, dict):
                waiting.append(value)
            elif key == _NAME and isinstance(value, int) and value > 1:
                yield value


def _depends(module: nn.Module, limit: int) -> bool:
    """Whether the first positions are turned otherwise in a pass that reaches beyond the limit."""
    device = next((one.device for one in module.buffers()), torch.device("cpu"))
    x = torch.zeros(1, 1, 1, device=device)
    near, far = torch.arange(2, device=device)[None], torch.tensor([[0, 1, limit]], device=device)
    try:
        with torch.no_grad():
            short, long = module(x, near), module(x, far)
            module(x, near)
        return not all(torch.equal(one, other[:, :2]) for one, other in zip(short, long, strict=True))
    except Exception:  # noqa: BLE001 - another kind of module, which takes other arguments
        return False


def _control(module: Any, limit: int, frequencies: Frequencies) -> None:
    original = module.forward
    module.by_length = frequencies

    def forward(x: Tensor, position_ids: Tensor, *arguments: Any, **keywords: Any) -> Any:
        if not module.by_length.long:  # what lies beyond the limit is padding
            return original(x, position_ids.clamp(max=limit - 1), *arguments, **keywords)
        beyond = torch.full_like(position_ids[..., :1], limit)
        turned = original(x, torch.cat([position_ids, beyond], dim=-1), *arguments, **keywords)
        return tuple(one[..., :-1, :] for one in turned)

    module.forward = forward

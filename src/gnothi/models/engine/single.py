"""A model's weights in single precision for a while: in 16 bits, rounding hides what a trial looks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gnothi.models.engine.packed import Packed


@contextmanager
def single_precision(model: nn.Module, without: list[nn.Module]) -> Iterator[bool]:
    """Inside, all weights but those of the layers ``without`` are float32; afterwards they are what they were, to the bit.

    False, and nothing is changed, where some cannot be: they are quantised, elsewhere, or laid out for a
    processor's kernels."""
    left_out = {id(module) for layer in without for module in layer.modules()}
    modules = [module for module in model.modules() if id(module) not in left_out]
    tensors = {id(one): one for module in modules for one in _own(module)}.values()
    fixed = any(not one.is_floating_point() or one.device.type == "meta" for one in _weights(modules))
    if fixed or any(isinstance(module, Packed) for module in modules):
        yield False
        return
    before = [(one, one.data) for one in tensors if one.is_floating_point() and one.element_size() < 4]
    try:
        with torch.inference_mode(False):  # what is made inside cannot take a weight's place
            for one, data in before:
                one.data = data.float()
        yield True
    finally:
        with torch.inference_mode(False):
            for one, data in before:
                one.data = data


def _weights(modules: list[nn.Module]) -> Iterator[Tensor]:
    for module in modules:
        yield from module.parameters(recurse=False)


def _own(module: nn.Module) -> Iterator[Tensor]:
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)


def is_single(model: nn.Module) -> bool:
    """Whether its weights are of single precision or better."""
    return next((one.element_size() for one in model.parameters() if one.is_floating_point()), torch.float32.itemsize) >= 4

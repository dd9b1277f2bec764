"""Memory for keys and values that grows as rows and prompts come."""

from __future__ import annotations

from math import prod
from mmap import mmap

import torch
from torch import Tensor

# From so many bytes on, a buffer is memory of its own.
_OWN_MEMORY = 1 << 17


def resized(old: Tensor, entries: int, filled: int) -> Tensor:
    """Room for ``entries``, with the first ``filled`` of the old ones."""
    new = zeros(old, (entries, *old.shape[1:]))
    new[:filled] = old[:filled]
    return new


def zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of the kind of ``like``. On a CPU, large ones are memory of their own from the system: what was never written to
    takes no room, and what is freed goes back, where the allocator would keep pieces of every size that rows grew through."""
    size = prod(shape) * like.element_size()
    if like.device.type != "cpu" or size < _OWN_MEMORY:
        return like.new_zeros(shape)
    return torch.frombuffer(mmap(-1, size), dtype=like.dtype).view(shape)

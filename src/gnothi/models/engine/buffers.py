"""Memory for keys and values that grows as rows and prompts come."""

from __future__ import annotations

import os
from contextlib import suppress
from math import prod
from mmap import mmap
from pathlib import Path

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


def free_memory() -> int:
    """Bytes that this process may still take: what the system says is available, half of all memory where it does not say,
    and no more than a container's limit leaves."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    with suppress(OSError, ValueError, IndexError):
        free = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    with suppress(OSError, ValueError):  # no limit is the word "max"
        group = Path("/sys/fs/cgroup")
        free = min(free, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return max(free, 0)

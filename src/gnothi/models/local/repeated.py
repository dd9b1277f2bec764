"""The decode path that works for every architecture: the library's own cache, filled once per prompt, repeated to its rows.

Prompts of a batch are padded on the left. All rows of a batch advance together, so new prompts wait until it is through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnothi.models.local.passes import Captured, Network


@dataclass(slots=True)
class _Running:
    cache: Any
    mask: Tensor | None  # (rows, tokens so far), None where no prompt is padded
    position: Tensor  # (rows,) of the next token to feed


class Repeated:
    """Rows over a repeated cache. Row order is that of the prompts admitted, a prompt's rows one after another."""

    name = "repeated"
    shares_prompts = False

    def __init__(self, network: Network) -> None:
        self._network = network
        self._running: _Running | None = None

    @property
    def open(self) -> bool:
        """Whether rows can join now."""
        return self._running is None

    def admit(self, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> tuple[Tensor, Captured]:
        """Start ``counts[i]`` rows from prompt i: logits (rows, vocabulary) of the first token, states at the prompt's end."""
        cache, mask, logits, states = self._network.prefill(prompts)
        index = torch.repeat_interleave(torch.tensor(counts)).to(logits.device)
        cache.reorder_cache(index)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=logits.device)
        self._running = _Running(cache, mask[index] if mask is not None else None, lengths[index])
        return logits[index], {tap: state[index] for tap, state in states.items()}

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        """Feed one token per row (rows,): logits of the next one and the states at the fed one."""
        running = self._running
        assert running is not None
        if running.mask is not None:
            running.mask = torch.cat([running.mask, running.mask.new_ones(len(tokens), 1)], dim=1)
        logits, states = self._network.forward(tokens[:, None], running.position[:, None], running.cache, running.mask)
        running.position += 1
        return logits[:, -1], {tap: state[:, -1] for tap, state in states.items()}

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        running = self._running
        assert running is not None
        if len(rows) == 0:
            self._running = None
            return
        running.cache.reorder_cache(rows)
        running.mask = running.mask[rows] if running.mask is not None else None
        running.position = running.position[rows]

    def clear(self) -> None:
        self._running = None

"""The decode path that works for every architecture: the library's own cache, filled once per prompt, repeated to its rows.

Prompts of a batch are padded on the left. All rows of a batch advance together, so new prompts wait until it is through.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnothi.models.engine.passes import Captured, Network


@dataclass(slots=True)
class _Running:
    cache: Any
    mask: Tensor | None  # (rows, tokens so far), None where no prompt is padded
    position: Tensor  # (rows,) of the next token to feed
    prompts: Tensor  # (rows,) tokens of the prompt


class Repeated:
    """Rows over a repeated cache. Row order is that of the prompts admitted, a prompt's rows one after another."""

    name = "repeated"
    shares_prompts = False
    budget = 0
    reused_tokens = 0

    def __init__(self, network: Network) -> None:
        self._network = network
        self._running: _Running | None = None

    @property
    def held_tokens(self) -> int:
        """Tokens of prompts whose keys and values are held, once for every row."""
        return int(self._running.prompts.sum()) if self._running is not None else 0

    def new_tokens(self, prompt: tuple[int, ...]) -> int:
        """How many tokens would have to be read to admit a prompt."""
        return len(prompt)

    @property
    def open(self) -> bool:
        """Whether rows can join now."""
        return self._running is None

    def admit(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, Captured]:
        """Start a row from each prompt: logits (prompts, vocabulary) of the first token, states at the prompt's end."""
        cache, mask, logits, states = self._network.prefill(prompts)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=logits.device)
        self._running = _Running(cache, mask, lengths, lengths.clone())
        return logits, states

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        """Feed one token per row (rows,): logits of the next one and the states at the fed one."""
        running = self._running
        assert running is not None
        if running.mask is not None:
            running.mask = torch.cat([running.mask, running.mask.new_ones(len(tokens), 1)], dim=1)
        logits, states = self._network.forward(tokens[:, None], running.position[:, None], running.cache, running.mask)
        running.position += 1
        return logits[:, -1], {tap: state[:, -1] for tap, state in states.items()}

    def ahead(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Tensor]]:
        """Prompts of which nothing but the next token matters: places and the logits after these."""
        return self._network.ahead(prompts, tokens)

    def ends(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Captured]]:
        """Prompts of which nothing but the wanted states at their ends matters: places and these."""
        return self._network.ends(prompts, tokens)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only, in this order. A row that is named several times goes on as several."""
        running = self._running
        assert running is not None
        if len(rows) == 0:
            self._running = None
            return
        running.cache.reorder_cache(rows)
        running.mask = running.mask[rows] if running.mask is not None else None
        running.position = running.position[rows]
        running.prompts = running.prompts[rows]

    def clear(self) -> None:
        self._running = None

    def forget(self) -> None:
        """Nothing is kept that no row reads."""

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        """Prompts without rows, to look at what may follow them."""
        return Reading(self._network, prompts)


class Reading:
    """Prompts that were read, for looking at what may follow them. ``logits`` (prompts, vocabulary) after each."""

    def __init__(self, network: Network, prompts: Sequence[tuple[int, ...]]) -> None:
        self._network = network
        self._cache, self._mask, self.logits, _ = network.prefill(prompts)
        self._lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.logits.device)

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        """Logits after each of ``tokens[i]``, (tokens, vocabulary), fed after prompt ``index[i]``."""
        device = self.logits.device
        chosen = torch.tensor(index, device=device)
        width = max(map(len, tokens))
        # Padding on the right: what follows a continuation's last token cannot be seen by it.
        fed = torch.tensor([[*row, *[0] * (width - len(row))] for row in tokens], device=device)
        seen = torch.cat([self._mask[chosen], self._mask.new_ones(fed.shape)], dim=1) if self._mask is not None else None
        position = self._lengths[chosen][:, None] + torch.arange(width, device=device)
        logits, _ = self._network.forward(fed, position, _selected(self._cache, chosen), seen)
        return [row[: len(given)] for row, given in zip(logits, tokens, strict=True)]

    def close(self) -> None:
        """Nothing outlives the object."""


def _selected(cache: Any, index: Tensor) -> Any:
    """Rows of a cache as a new one; the library's layers replace their tensors when they grow, so the old one stays."""
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in chosen.layers:
        for name, value in vars(layer).items():
            if isinstance(value, dict):
                setattr(layer, name, dict(value))
    chosen.reorder_cache(index)
    return chosen

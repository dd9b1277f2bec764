"""The decode path for what cannot be forked: the library's own cache, filled once per prompt, repeated to its rows.

Prompts of a batch are padded on the left.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnothi.models.engine.passes import Network
from gnothi.models.engine.path import InStep, PrefillSteps, run_to_end
from gnothi.models.engine.states import Captured


@dataclass(slots=True)
class _Running:
    cache: Any
    mask: Tensor | None  # (rows, tokens so far), None where no prompt is padded
    position: Tensor  # (rows,) of the next token to feed
    prompts: Tensor  # (rows,) tokens of the prompt


class Repeated(InStep):
    """Rows over a repeated cache. Not every architecture reads prompts of several lengths side by side as it reads each alone:
    one that does not is given one prompt at a time (``together`` is False). Nor does everyone go on from a cache with several
    tokens: where that fails (``several`` is False), prompts are read whole, and what follows them a token at a time."""

    name = "repeated"

    def __init__(self, network: Network, *, together: bool = True, several: bool = True) -> None:
        self._network = network
        self.together = together
        self._several = several
        self._running: _Running | None = None

    @property
    def cached_tokens(self) -> int:
        return int(self._running.prompts.sum()) if self._running is not None else 0

    def admit(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[tuple[Tensor, Captured]]:
        cache, mask, logits, states = yield from self._network.prefill(prompts, whole=not self._several)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=logits.device)
        self._running = _Running(cache, mask, lengths, lengths.clone())
        return logits, states

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        running = self._running
        assert running is not None
        if running.mask is not None:
            running.mask = torch.cat([running.mask, running.mask.new_ones(len(tokens), 1)], dim=1)
        logits, states = self._network.forward(tokens[:, None], running.position[:, None], running.cache, running.mask)
        running.position += 1
        return logits[:, -1], {hook: state[:, -1] for hook, state in states.items()}

    def ahead(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Tensor]]:
        return self._network.ahead(prompts, tokens if self.together else 0)

    def ends(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Captured]]:
        return self._network.ends(prompts, tokens if self.together else 0)

    def _select(self, rows: Tensor) -> None:
        running = self._running
        assert running is not None
        running.cache.reorder_cache(rows)
        running.mask = running.mask[rows] if running.mask is not None else None
        running.position = running.position[rows]
        running.prompts = running.prompts[rows]

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        groups = [prompts] if self.together else [[prompt] for prompt in prompts]
        return Reading([_Group(self._network, group, self._several) for group in groups])


class Reading:
    """``path.Reading``."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self._groups = groups
        self.logits = torch.cat([group.logits for group in groups])

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        if len(self._groups) == 1:
            return self._groups[0].follow(index, tokens)
        results: list[Tensor] = [self.logits] * len(index)
        for number, group in enumerate(self._groups):
            places = [place for place, at in enumerate(index) if at == number]
            if places:
                followed = group.follow([0] * len(places), [tokens[place] for place in places])
                for place, logits in zip(places, followed, strict=True):
                    results[place] = logits
        return results

    def close(self) -> None:
        """Nothing outlives the object."""


class _Group:
    """Prompts that were read side by side."""

    def __init__(self, network: Network, prompts: Sequence[tuple[int, ...]], several: bool) -> None:
        self._network, self._several = network, several
        self._cache, self._mask, self.logits, _ = run_to_end(network.prefill(prompts, whole=not several))
        self._lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.logits.device)

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        device = self.logits.device
        chosen = torch.tensor(index, device=device)
        width = max(map(len, tokens))
        # Padding on the right: what follows a continuation's last token cannot be seen by it.
        fed = torch.tensor([[*row, *[0] * (width - len(row))] for row in tokens], device=device)
        mask = torch.cat([self._mask[chosen], self._mask.new_ones(fed.shape)], dim=1) if self._mask is not None else None
        position = self._lengths[chosen][:, None] + torch.arange(width, device=device)
        cache, before = _selected(self._cache, chosen), 0 if mask is None else mask.shape[1] - width
        parts = [slice(0, width)] if self._several else [slice(at, at + 1) for at in range(width)]
        passed = [
            self._network.forward(
                fed[:, part], position[:, part], cache, None if mask is None else mask[:, : before + part.stop]
            )[0]
            for part in parts
        ]
        logits = passed[0] if len(passed) == 1 else torch.cat(passed, dim=1)
        return [row[: len(reply)] for row, reply in zip(logits, tokens, strict=True)]


def _selected(cache: Any, index: Tensor) -> Any:
    """Rows of a cache as a new one; the library's layers replace their tensors when they grow, so the old one stays."""
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in chosen.layers:
        for name, value in vars(layer).items():
            if isinstance(value, dict | list):
                setattr(layer, name, copy.copy(value))
    chosen.reorder_cache(index)
    return chosen

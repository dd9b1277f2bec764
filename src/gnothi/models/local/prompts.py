"""Keys and values of prompts, held once however many rows continue them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models.local.states import Tap


@dataclass(slots=True)
class Held:
    """A prompt in a shelf: its tokens, and the logits and states at its end."""

    tokens: tuple[int, ...]
    logits: Tensor
    states: dict[Tap, Tensor]
    rows: int = 0


class Shelf:
    """Prompts of similar length, so that padding stays small: per layer (prompts, heads, width, size), filled from the left."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.held: list[Held] = []
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def add(self, held: Held, cache: Any, row: int) -> int:
        """Copy row ``row`` of a left-padded cache. The new prompt's slot."""
        slot = len(self.held)
        if not self.keys:
            self.keys = [self._room(layer.keys, 1) for layer in cache.layers]
            self.values = [self._room(layer.values, 1) for layer in cache.layers]
        elif slot == len(self.keys[0]):
            self.keys = [_doubled(tensor) for tensor in self.keys]
            self.values = [_doubled(tensor) for tensor in self.values]
        length = len(held.tokens)
        for layer, keys, values in zip(cache.layers, self.keys, self.values, strict=True):
            keys[slot, :, :length] = layer.keys[row, :, -length:]
            values[slot, :, :length] = layer.values[row, :, -length:]
        self.held.append(held)
        return slot

    def drop(self, slot: int) -> None:
        """Forget a prompt; the last one takes its slot."""
        last = len(self.held) - 1
        if slot != last:
            for tensor in (*self.keys, *self.values):
                tensor[slot] = tensor[last]
        self.held[slot] = self.held[last]
        self.held.pop()

    def _room(self, like: Tensor, slots: int) -> Tensor:
        return like.new_zeros((slots, like.shape[1], self.width, like.shape[3]))


def _doubled(tensor: Tensor) -> Tensor:
    return torch.cat([tensor, torch.zeros_like(tensor)])


def shelf_width(length: int) -> int:
    """The width of the shelf for prompts of ``length`` tokens: 64, 96, 128, 192, 256 and so on, at most half as much again."""
    width = 64
    while width < length:
        if width * 3 // 2 >= length:
            return width * 3 // 2
        width *= 2
    return width


@dataclass(slots=True)
class Grid:
    """Which rows read which prompt of a shelf: row ``rows[p, s]`` is the s-th of prompt p (repeated where p has fewer).

    ``hidden`` (prompts, 1, 1, 1, width) marks padding, None where there is none; ``lengths`` (prompts,) are the prompts'.
    """

    shelf: Shelf
    rows: Tensor
    hidden: Tensor | None
    lengths: Tensor


def lay_out(
    shelves: Sequence[Shelf], shelf_of: NDArray[np.int64], slot_of: NDArray[np.int64], device: torch.device
) -> tuple[list[Grid], Tensor | None]:
    """Grids of the shelves in use, and where each row stands in their concatenated cells (None where rows are the cells)."""
    grids: list[Grid] = []
    place = np.empty(len(shelf_of), np.int64)
    cells = 0
    for number, shelf in enumerate(shelves):
        members = np.flatnonzero(shelf_of == number)
        if not len(members):
            continue
        members = members[np.argsort(slot_of[members], kind="stable")]
        slots = slot_of[members]
        starts = np.searchsorted(slots, np.arange(len(shelf.held)))
        rank = np.arange(len(members)) - starts[slots]
        widest = int(rank.max()) + 1
        rows = np.zeros((len(shelf.held), widest), np.int64)
        rows[slots, rank] = members
        place[members] = cells + slots * widest + rank
        cells += rows.size
        lengths = np.array([len(held.tokens) for held in shelf.held])
        hidden = None
        if lengths.min() < shelf.width:
            hidden = torch.from_numpy(np.arange(shelf.width) >= lengths[:, None]).to(device)[:, None, None, None]
        grids.append(Grid(shelf, torch.from_numpy(rows).to(device), hidden, torch.from_numpy(lengths).to(device)))
    identity = len(place) == cells and bool((place == np.arange(cells)).all())
    return grids, None if identity else torch.from_numpy(place).to(device)

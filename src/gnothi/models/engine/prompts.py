"""Where the keys and values lie of the prompts that rows are reading: each prompt once, however many rows continue it.

A prompt's long beginning, which other prompts may share, is read where it lies (its trunk); the rest of it is copied to a
shelf, beside tails of similar length, so that one product serves many prompts.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models.engine.buffers import resized, zeros
from gnothi.models.engine.prefixes import Segment
from gnothi.models.engine.states import Tap

# Tokens for which a shelf has room in advance.
_SPARE = 2048


@dataclass(slots=True, eq=False)
class Held:
    """A prompt, or the part of it that was read so far. ``slot`` of ``shelf`` holds the ``tail`` tokens after the trunk.

    ``logits`` (vocabulary,) and ``states`` (hidden size,) are those at its end.
    """

    tokens: tuple[int, ...]
    number: int
    trunk: tuple[Segment, ...] = ()
    shelf: Shelf | None = None
    slot: int = -1
    tail: int = 0
    logits: Tensor | None = None
    states: dict[Tap, Tensor] = field(default_factory=dict)

    @property
    def stem(self) -> int:
        """Tokens in the trunk."""
        return self.trunk[-1].start + self.trunk[-1].length if self.trunk else 0

    @property
    def read(self) -> int:
        return self.stem + self.tail

    def tells(self, wanted: Set[Tap]) -> bool:
        """Whether it was read to its end, and these states there are known."""
        return self.logits is not None and wanted <= self.states.keys()


class Shelf:
    """Tails of similar length, so that padding stays small: per layer (slots, heads, width, size), filled from the left."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.held: list[Held] = []
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def add(self, held: Held) -> None:
        """Give ``held`` a slot, empty as yet."""
        held.shelf, held.slot, held.tail = self, len(self.held), 0
        self.held.append(held)
        if self.keys and len(self.held) > len(self.keys[0]):
            self._resize(len(self.held) - 1)

    def _resize(self, filled: int) -> None:
        # One tensor after another, so that no more than one is held twice.
        for tensors in (self.keys, self.values):
            for layer, tensor in enumerate(tensors):
                tensors[layer] = resized(tensor, len(self.held) + len(self.held) // 8 + self._spare, filled)

    @property
    def _spare(self) -> int:
        return _SPARE // self.width

    @property
    def room(self) -> int:
        """Tokens that its tails take, padding included."""
        return self.width * len(self.held)

    def append(self, held: Held, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Copy the keys and values of the next tokens of ``held``, per layer (heads, tokens, size)."""
        if not self.keys:
            slots = len(self.held) + self._spare
            self.keys = [zeros(like, (slots, like.shape[0], self.width, like.shape[2])) for like in keys]
            self.values = [zeros(like, (slots, like.shape[0], self.width, like.shape[2])) for like in values]
        end = held.tail + keys[0].shape[1]
        for room, new in zip((*self.keys, *self.values), (*keys, *values), strict=True):
            room[held.slot, :, held.tail : end] = new
        held.tail = end

    def drop(self, held: Held) -> None:
        """Forget a tail; the last one takes its slot."""
        last = self.held.pop()
        if last is not held:
            for tensor in (*self.keys, *self.values):
                tensor[held.slot] = tensor[last.slot]
            last.slot = held.slot
            self.held[last.slot] = last
        held.shelf, held.slot = None, -1
        if self.keys and 4 * (len(self.held) + self._spare) < len(self.keys[0]):
            self._resize(len(self.held))


def shelf_width(length: int) -> int:
    """The width of the shelf for tails of ``length`` tokens: 64, 96, 128, 192, 256 and so on, at most half as much again."""
    width = 64
    while width < length:
        if width * 3 // 2 >= length:
            return width * 3 // 2
        width *= 2
    return width


@dataclass(slots=True)
class Grid:
    """Which rows read which prompt of a source: row ``rows[p, s]`` is the s-th of prompt p (repeated where p has fewer).

    ``rows`` is None where one prompt is read by all rows in their order. ``hidden`` (prompts, width) marks padding, None where
    there is none; ``starts`` (prompts,) are the positions of the first tokens. The prompts of a shelf are those in ``slots``.
    """

    source: Shelf | Segment
    rows: Tensor | None
    hidden: Tensor | None
    starts: Tensor
    slots: slice | Tensor | None = None

    def at(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer, (prompts, heads, width, size)."""
        if isinstance(self.source, Shelf):
            assert self.slots is not None
            return self.source.keys[layer][self.slots], self.source.values[layer][self.slots]
        return self.source.keys[layer][None], self.source.values[layer][None]


@dataclass(slots=True)
class Level:
    """Grids that give each row at most one part of its prompt. ``place`` (rows,) is where a row stands among the grids'
    concatenated cells; the cell behind the last one stands for no part. None where rows are the cells."""

    grids: list[Grid]
    place: Tensor | None


def lay_out(helds: Sequence[Held], of_row: NDArray[np.int64], device: torch.device) -> list[Level]:
    """The parts of the prompts ``helds`` that the rows read; row r reads prompt ``of_row[r]``. Every prompt has rows."""
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(helds))
    members = np.split(order, np.cumsum(counts)[:-1])
    levels = [_shelved(helds, members, len(of_row), device)] if any(held.tail for held in helds) else []
    for depth in range(max((len(held.trunk) for held in helds), default=0)):
        levels.append(_trunks(helds, members, depth, len(of_row), device))
    return levels


def _shelved(helds: Sequence[Held], members: Sequence[NDArray[np.int64]], count: int, device: torch.device) -> Level:
    shelves: dict[int, tuple[Shelf, list[int]]] = {}
    for number, held in enumerate(helds):
        if held.shelf is not None and held.tail:
            shelves.setdefault(held.shelf.width, (held.shelf, []))[1].append(number)
    grids: list[Grid] = []
    place, cells = np.full(count, -1, np.int64), 0
    for shelf, numbers in shelves.values():
        slots = [helds[number].slot for number in numbers]
        first, last = min(slots), max(slots) + 1
        common = _common_count(np.array([len(members[number]) for number in numbers]), last - first)
        usual = [np.zeros(0, np.int64)] * (last - first)
        for number, slot in zip(numbers, slots, strict=True):
            usual[slot - first] = members[number][:common]
        more = [number for number in numbers if len(members[number]) > common]
        selected = torch.tensor([helds[number].slot for number in more], device=device)
        for where, used, rows in (
            (slice(first, last), shelf.held[first:last], usual),
            (selected, [helds[number] for number in more], [members[number][common:] for number in more]),
        ):
            if used:
                widest = max(map(len, rows))
                for at, mine in enumerate(rows):
                    place[mine] = cells + at * widest + np.arange(len(mine))
                cells += len(rows) * widest
                grids.append(_grid(shelf, where, used, rows, device))
    return _level(grids, place, cells, device)


def _grid(
    shelf: Shelf, slots: slice | Tensor, used: Sequence[Held], rows: Sequence[NDArray[np.int64]], device: torch.device
) -> Grid:
    table = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for at, mine in enumerate(rows):
        table[at, : len(mine)] = mine
    lengths = np.array([held.tail for held in used])
    hidden = None
    if lengths.min() < shelf.width:
        hidden = torch.from_numpy(np.arange(shelf.width) >= lengths[:, None]).to(device)
    starts = torch.tensor([held.stem for held in used], device=device)
    return Grid(shelf, torch.from_numpy(table).to(device), hidden, starts, slots)


def _common_count(counts: NDArray[np.int64], slots: int) -> int:
    """How many rows of each prompt to put into a grid over all slots, so that least is computed in vain: the rest of prompts
    that have more goes into a grid of its own, for which their keys and values are copied (worth a few rows)."""
    most = int(counts.max())
    choices = sorted({most, *(1 << power for power in range(most.bit_length()))})
    return min(choices, key=lambda choice: slots * choice + int((counts > choice).sum()) * (most - choice + 4))


def _trunks(helds: Sequence[Held], members: Sequence[NDArray[np.int64]], depth: int, count: int, device: torch.device) -> Level:
    segments: dict[int, tuple[Segment, list[int]]] = {}
    for number, held in enumerate(helds):
        if len(held.trunk) > depth:
            segment = held.trunk[depth]
            segments.setdefault(id(segment), (segment, []))[1].append(number)
    grids, place, cells = [], np.full(count, -1, np.int64), 0
    for segment, numbers in segments.values():
        rows = np.sort(np.concatenate([members[number] for number in numbers]))
        place[rows] = cells + np.arange(len(rows))
        cells += len(rows)
        index = torch.from_numpy(rows[None]).to(device) if len(rows) < count else None
        grids.append(Grid(segment, index, None, torch.tensor([segment.start], device=device)))
    return _level(grids, place, cells, device)


def _level(grids: list[Grid], place: NDArray[np.int64], cells: int, device: torch.device) -> Level:
    if len(place) == cells and bool((place == np.arange(cells)).all()):
        return Level(grids, None)
    return Level(grids, torch.from_numpy(np.where(place < 0, cells, place)).to(device))

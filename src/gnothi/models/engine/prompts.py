"""Where the keys and values lie of the prompts that rows are reading: each prompt once, however many rows continue it.

A prompt's long beginning, which other prompts may share, is read where it lies (its trunk); the rest of it is copied to a
pool, beside tails of similar length, so that one product serves many prompts.
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
from gnothi.models.engine.states import StateHook

# Tokens for which a pool has room in advance.
_SPARE = 2048


@dataclass(slots=True, eq=False)
class CachedPrompt:
    """A prompt, or the part of it that was read so far. ``slot`` of ``pool`` holds the ``tail`` tokens after the trunk.

    ``logits`` (vocabulary,) and ``states`` (hidden size,) are those at its end.
    """

    tokens: tuple[int, ...]
    number: int
    trunk: tuple[Segment, ...] = ()
    pool: SuffixPool | None = None
    slot: int = -1
    tail: int = 0
    logits: Tensor | None = None
    states: dict[StateHook, Tensor] = field(default_factory=dict)

    @property
    def stem(self) -> int:
        """Tokens in the trunk."""
        return self.trunk[-1].start + self.trunk[-1].length if self.trunk else 0

    @property
    def read(self) -> int:
        return self.stem + self.tail

    def covers(self, wanted: Set[StateHook]) -> bool:
        """Whether it was read to its end, and these states there are known."""
        return self.logits is not None and wanted <= self.states.keys()


class SuffixPool:
    """Tails of similar length, so that padding stays small: per layer (slots, heads, width, size), filled from the left."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.cached: list[CachedPrompt] = []
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def add(self, cached: CachedPrompt) -> None:
        """Give ``cached`` a slot, empty as yet."""
        cached.pool, cached.slot, cached.tail = self, len(self.cached), 0
        self.cached.append(cached)
        if self.keys and len(self.cached) > len(self.keys[0]):
            self._resize(len(self.cached) - 1)

    def _resize(self, filled: int) -> None:
        # One tensor after another, so that no more than one is cached twice.
        for tensors in (self.keys, self.values):
            for layer, tensor in enumerate(tensors):
                tensors[layer] = resized(tensor, len(self.cached) + len(self.cached) // 8 + self._spare, filled)

    @property
    def _spare(self) -> int:
        return _SPARE // self.width

    @property
    def room(self) -> int:
        """Tokens that its tails take, padding included."""
        return self.width * len(self.cached)

    def append(self, cached: CachedPrompt, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Copy the keys and values of the next tokens of ``cached``, per layer (heads, tokens, size)."""
        if not self.keys:
            slots = len(self.cached) + self._spare
            self.keys = [zeros(like, (slots, like.shape[0], self.width, like.shape[2])) for like in keys]
            self.values = [zeros(like, (slots, like.shape[0], self.width, like.shape[2])) for like in values]
        end = cached.tail + keys[0].shape[1]
        for room, new in zip((*self.keys, *self.values), (*keys, *values), strict=True):
            room[cached.slot, :, cached.tail : end] = new
        cached.tail = end

    def drop(self, cached: CachedPrompt) -> None:
        """Forget a tail; the last one takes its slot."""
        last = self.cached.pop()
        if last is not cached:
            for tensor in (*self.keys, *self.values):
                tensor[cached.slot] = tensor[last.slot]
            last.slot = cached.slot
            self.cached[last.slot] = last
        cached.pool, cached.slot = None, -1
        if self.keys and 4 * (len(self.cached) + self._spare) < len(self.keys[0]):
            self._resize(len(self.cached))


def pool_width(length: int) -> int:
    """The width of the pool for tails of ``length`` tokens: 64, 96, 128, 192, 256 and so on, at most half as much again."""
    width = 64
    while width < length:
        if width * 3 // 2 >= length:
            return width * 3 // 2
        width *= 2
    return width


@dataclass(slots=True)
class AttentionTile:
    """Which rows read which prompt of a source: row ``rows[p, s]`` is the s-th of prompt p (repeated where p has fewer).

    ``rows`` is None where one prompt is read by all rows in their order. ``hidden`` (prompts, width) marks padding, None where
    there is none; ``starts`` (prompts,) are the positions of the first tokens. The prompts of a pool are those in ``slots``.
    """

    source: SuffixPool | Segment
    rows: Tensor | None
    hidden: Tensor | None
    starts: Tensor
    slots: slice | Tensor | None = None

    def at(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer, (prompts, heads, width, size)."""
        if isinstance(self.source, SuffixPool):
            assert self.slots is not None
            return self.source.keys[layer][self.slots], self.source.values[layer][self.slots]
        return self.source.keys[layer][None], self.source.values[layer][None]


@dataclass(slots=True)
class Level:
    """Grids that give each row at most one part of its prompt. ``place`` (rows,) is where a row stands among the grids'
    concatenated cells; the cell behind the last one stands for no part. None where rows are the cells."""

    tiles: list[AttentionTile]
    place: Tensor | None


def lay_out(cached_prompts: Sequence[CachedPrompt], of_row: NDArray[np.int64], device: torch.device) -> list[Level]:
    """The parts of ``cached_prompts`` that the rows read; row r reads prompt ``of_row[r]``. Every prompt has rows."""
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(cached_prompts))
    members = np.split(order, np.cumsum(counts)[:-1])
    levels = [_pooled(cached_prompts, members, len(of_row), device)] if any(cached.tail for cached in cached_prompts) else []
    for depth in range(max((len(cached.trunk) for cached in cached_prompts), default=0)):
        levels.append(_trunks(cached_prompts, members, depth, len(of_row), device))
    return levels


def _pooled(
    cached_prompts: Sequence[CachedPrompt], members: Sequence[NDArray[np.int64]], count: int, device: torch.device
) -> Level:
    pools: dict[int, tuple[SuffixPool, list[int]]] = {}
    for number, cached in enumerate(cached_prompts):
        if cached.pool is not None and cached.tail:
            pools.setdefault(cached.pool.width, (cached.pool, []))[1].append(number)
    tiles: list[AttentionTile] = []
    place, cells = np.full(count, -1, np.int64), 0
    for pool, numbers in pools.values():
        slots = [cached_prompts[number].slot for number in numbers]
        first, last = min(slots), max(slots) + 1
        common = _common_count(np.array([len(members[number]) for number in numbers]), last - first)
        usual = [np.zeros(0, np.int64)] * (last - first)
        for number, slot in zip(numbers, slots, strict=True):
            usual[slot - first] = members[number][:common]
        more = [number for number in numbers if len(members[number]) > common]
        selected = torch.tensor([cached_prompts[number].slot for number in more], device=device)
        for where, used, rows in (
            (slice(first, last), pool.cached[first:last], usual),
            (selected, [cached_prompts[number] for number in more], [members[number][common:] for number in more]),
        ):
            if used:
                widest = max(map(len, rows))
                for at, mine in enumerate(rows):
                    place[mine] = cells + at * widest + np.arange(len(mine))
                cells += len(rows) * widest
                tiles.append(_tile(pool, where, used, rows, device))
    return _level(tiles, place, cells, device)


def _tile(
    pool: SuffixPool,
    slots: slice | Tensor,
    used: Sequence[CachedPrompt],
    rows: Sequence[NDArray[np.int64]],
    device: torch.device,
) -> AttentionTile:
    table = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for at, mine in enumerate(rows):
        table[at, : len(mine)] = mine
    lengths = np.array([cached.tail for cached in used])
    hidden = None
    if lengths.min() < pool.width:
        hidden = torch.from_numpy(np.arange(pool.width) >= lengths[:, None]).to(device)
    starts = torch.tensor([cached.stem for cached in used], device=device)
    return AttentionTile(pool, torch.from_numpy(table).to(device), hidden, starts, slots)


def _common_count(counts: NDArray[np.int64], slots: int) -> int:
    """How many rows of each prompt to put into a grid over all slots, so that least is computed in vain: the rest of prompts
    that have more goes into a grid of its own, for which their keys and values are copied (worth a few rows)."""
    most = int(counts.max())
    choices = sorted({most, *(1 << power for power in range(most.bit_length()))})
    return min(choices, key=lambda choice: slots * choice + int((counts > choice).sum()) * (most - choice + 4))


def _trunks(
    cached_prompts: Sequence[CachedPrompt], members: Sequence[NDArray[np.int64]], depth: int, count: int, device: torch.device
) -> Level:
    segments: dict[int, tuple[Segment, list[int]]] = {}
    for number, cached in enumerate(cached_prompts):
        if len(cached.trunk) > depth:
            segment = cached.trunk[depth]
            segments.setdefault(id(segment), (segment, []))[1].append(number)
    tiles, place, cells = [], np.full(count, -1, np.int64), 0
    for segment, numbers in segments.values():
        rows = np.sort(np.concatenate([members[number] for number in numbers]))
        place[rows] = cells + np.arange(len(rows))
        cells += len(rows)
        index = torch.from_numpy(rows[None]).to(device) if len(rows) < count else None
        tiles.append(AttentionTile(segment, index, None, torch.tensor([segment.start], device=device)))
    return _level(tiles, place, cells, device)


def _level(tiles: list[AttentionTile], place: NDArray[np.int64], cells: int, device: torch.device) -> Level:
    if len(place) == cells and bool((place == np.arange(cells)).all()):
        return Level(tiles, None)
    return Level(tiles, torch.from_numpy(np.where(place < 0, cells, place)).to(device))

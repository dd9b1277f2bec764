"""Keys and values of what running rows have generated, each row at a length of its own."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models.engine.attention import Part, weighted, wide
from gnothi.models.engine.buffers import resized, zeros


class Continuations:
    """One row each; ``fed`` (rows,) counts the tokens a row holds. Rows keep the order of admission, or the one ``keep`` gives.

    Per layer, blocks of (rows, heads, block, size): a product over whole blocks needs no copy, one over a slice would.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # With 8 a row's product is so small for a narrow model (heads of 32) that torch computes it without its fast kernels.
        self._block = 16 if device.type == "cpu" else 64
        self.clear()

    def clear(self) -> None:
        self.fed = np.zeros(0, np.int64)
        self._keys: list[list[Tensor]] = []
        self._values: list[list[Tensor]] = []

    def add(self, rows: int) -> None:
        self.fed = np.concatenate([self.fed, np.zeros(rows, np.int64)])

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Go on with these rows only, in this order, a row that is named several times as several. Only what changes its place
        is copied."""
        # Rows that were not fed yet have nothing to move.
        moved = np.flatnonzero((rows != np.arange(len(rows))) & (self.fed[rows] > 0))
        if len(moved):
            filled = self.fed[rows[moved]]
            # Per block, the rows that reach it: memory that nobody wrote to takes no room.
            moves = []
            for number in range(-(-int(filled.max()) // self._block)):
                here = moved[filled > number * self._block]
                to, origin = torch.from_numpy(here).to(self._device), torch.from_numpy(rows[here]).to(self._device)
                moves.append((to, origin, slice(min(int(filled.max()) - number * self._block, self._block))))
            for blocks in (*self._keys, *self._values):
                _widen(blocks, len(rows))
                for block, (to, origin, tokens) in zip(blocks, moves, strict=False):
                    block[to, :, tokens] = block[origin, :, tokens]
        self.fed = self.fed[rows]

    def begin(self) -> None:
        """One token more for each row is about to come."""
        rows = len(self.fed)
        self._reached = int(self.fed.max()) // self._block + 1
        fed = torch.from_numpy(self.fed).to(self._device)[:, None]
        place = torch.arange(self._reached * self._block, device=self._device)
        self._ahead = fed - place
        self._future = (self._ahead < 0)[:, None, None]
        # Per block in reach, the rows whose token goes there, and where.
        self._places: list[tuple[Tensor, Tensor] | None] = []
        for number in range(self._reached):
            members = np.flatnonzero(self.fed // self._block == number)
            positions = torch.from_numpy(self.fed[members] - number * self._block).to(self._device)
            self._places.append((torch.from_numpy(members).to(self._device), positions) if len(members) else None)
        self._rows = rows

    def end(self) -> None:
        """The token has come."""
        self.fed += 1

    def receive(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Keys and values of one token of every row, (rows, heads, 1, size)."""
        for layers, new in ((self._keys, keys), (self._values, values)):
            if layer == len(layers):
                layers.append([])
            blocks = layers[layer]
            self._reserve(blocks, new)
            for block, place in zip(blocks, self._places, strict=False):
                if place is not None:
                    members, positions = place
                    chosen = new[:, :, 0] if len(members) == len(new) else new[members, :, 0]
                    block[members, :, positions] = chosen

    def _reserve(self, blocks: list[Tensor], like: Tensor) -> None:
        _widen(blocks, self._rows)
        while len(blocks) < self._reached:
            # Zeros, because what a row has not reached is weighted by zero, which not-a-number would survive.
            blocks.append(zeros(like, (self._rows, like.shape[1], self._block, like.shape[3])))

    def part(self, layer: int, query: Tensor, window: int | None) -> Part:
        """Rows over their own tokens; ``query`` (rows, key heads, groups, size)."""
        rows, heads, groups, _ = query.shape
        keys = [block[:rows] for block in self._keys[layer][: self._reached]]
        values = [block[:rows] for block in self._values[layer][: self._reached]]
        flat = query.flatten(0, 1)
        products = [torch.bmm(flat, block.flatten(0, 1).transpose(1, 2)) for block in keys]
        scores = wide(products[0] if len(products) == 1 else torch.cat(products, dim=2)).view(rows, heads, groups, -1)
        scores.masked_fill_(self._future, -torch.inf)
        if window is not None:
            scores.masked_fill_((self._ahead >= window)[:, None, None], -torch.inf)
        top, total, weights = weighted(scores)
        shares: tuple[Tensor, ...] = torch.tensor_split(weights.flatten(0, 1).to(values[0].dtype), len(values), dim=2)
        mixed = torch.bmm(shares[0], values[0].flatten(0, 1))
        for share, block in zip(shares[1:], values[1:], strict=True):
            mixed = torch.baddbmm(mixed, share, block.flatten(0, 1))
        return Part(top, total, mixed.to(scores.dtype).view(rows, heads, groups, -1))


def _widen(blocks: list[Tensor], rows: int) -> None:
    """Make room for ``rows`` rows; an eighth more than there was, so that rows that come one by one do not each cost a copy."""
    for number, old in enumerate(blocks):
        if len(old) < rows:
            blocks[number] = resized(old, max(rows, len(old) + len(old) // 8), len(old))

"""Forked decoding: a prompt's keys and values are kept once, its rows read them together and keep only their own.

Attention of a row runs over two parts, the prompt it shares and its own continuation, joined by one softmax: each part gives
its maximum, its sum of exponentials and its weighted values, which add up after rescaling. The part over the prompts is one
matrix product per prompt for all of its rows. Rows may stand at different lengths, so new ones join at any step.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from gnothi.models.local.passes import Captured, Network
from gnothi.models.local.prompts import Grid, Held, Shelf, lay_out, shelf_width
from gnothi.models.local.repeated import Repeated

IMPLEMENTATION = "gnothi_forked"
# What an attention layer may pass that changes its result and that the two-part softmax does not know.
_UNKNOWN = ("softcap", "s_aux", "sinks", "position_bias", "indices", "block_indices")


class Unsupported(Exception):
    """This architecture's attention is not covered; use the repeated cache."""


@dataclass(slots=True)
class _Step:
    """What the attention of every layer needs during one step. ``fed`` (rows,) counts the tokens a row holds already."""

    keys: list[list[Tensor]]
    values: list[list[Tensor]]
    grids: list[Grid]
    place: Tensor | None
    fed: Tensor
    blocks: int  # blocks of own keys and values that any row has reached
    places: list[tuple[Tensor, Tensor]]  # per such block: the rows whose fed token goes there, and where
    future: Tensor  # (rows, 1, 1, positions in those blocks): own positions a row has not reached
    reach: int  # the largest position of any row
    layer: int = -1


_ACTIVE = threading.local()


class _StepCache(Cache):
    """Stands for the library's cache during a step: hands the new keys on and notes which layer's attention comes next."""

    def __init__(self, step: _Step, own: Forked) -> None:
        super().__init__(layers=[])
        self._step = step
        self._own = own

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        self._step.layer = layer_idx
        self._own.reserve(layer_idx, key_states, value_states)
        return key_states, value_states


class Forked:
    """Rows over shared prompts. Rows keep the order of admission, or the one ``keep`` gives them."""

    name = "forked"
    shares_prompts = True
    open = True

    def __init__(self, network: Network) -> None:
        self._network = network
        self._block = 16 if network.device.type == "cpu" else 64
        self.clear()

    def clear(self) -> None:
        self._shelves: list[Shelf] = []
        self._where: dict[tuple[int, ...], tuple[int, int]] = {}
        self._shelf_of = np.zeros(0, np.int64)
        self._slot_of = np.zeros(0, np.int64)
        self._fed = np.zeros(0, np.int64)
        self._length = np.zeros(0, np.int64)
        # Per layer, blocks of (rows, heads, block, size). A product over whole blocks needs no copy, one over a slice would.
        self._keys: list[list[Tensor]] = []
        self._values: list[list[Tensor]] = []
        self._layout: tuple[list[Grid], Tensor | None] | None = None

    def admit(self, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> tuple[Tensor, Captured]:
        """Add ``counts[i]`` rows for prompt i: logits (rows, vocabulary) of the first token, states at the prompt's end.

        A prompt that other rows are reading already is not read again.
        """
        tokens = [tuple(prompt) for prompt in prompts]
        wanted = self._network.wanted
        fresh = [prompt for prompt in tokens if prompt not in self._where or not wanted <= self._held(prompt).states.keys()]
        if fresh:
            self._read(fresh)
        held = [self._held(prompt) for prompt in tokens]
        for one, prompt, count in zip(held, tokens, counts, strict=True):
            shelf, slot = self._where[prompt]
            one.rows += count
            self._shelf_of = np.concatenate([self._shelf_of, np.full(count, shelf)])
            self._slot_of = np.concatenate([self._slot_of, np.full(count, slot)])
            self._length = np.concatenate([self._length, np.full(count, len(prompt))])
        self._fed = np.concatenate([self._fed, np.zeros(sum(counts), np.int64)])
        self._layout = None
        index = torch.repeat_interleave(torch.tensor(counts)).to(self._network.device)
        logits = torch.stack([one.logits for one in held])[index]
        return logits, {tap: torch.stack([one.states[tap] for one in held])[index] for tap in wanted}

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        """Feed one token per row (rows,): logits of the next one and the states at the fed one."""
        device = self._network.device
        if self._layout is None:
            self._layout = lay_out(self._shelves, self._shelf_of, self._slot_of, device)
        blocks = int(self._fed.max()) // self._block + 1
        fed = torch.from_numpy(self._fed).to(device)
        future = (torch.arange(blocks * self._block, device=device) > fed[:, None])[:, None, None]
        position = torch.from_numpy(self._length).to(device) + fed
        grids, place = self._layout
        places = []
        for number in range(blocks):
            members = np.flatnonzero(self._fed // self._block == number)
            positions = self._fed[members] - number * self._block
            places.append((torch.from_numpy(members).to(device), torch.from_numpy(positions).to(device)))
        reach = int((self._length + self._fed).max())
        step = _Step(self._keys, self._values, grids, place, fed, blocks, places, future, reach)
        _ACTIVE.step = step
        try:
            # A mask of four dimensions is passed through by the library, which so builds none of its own.
            nothing = torch.zeros(1, 1, 1, 1, device=device)
            cache = _StepCache(step, self)
            logits, states = self._network.forward(tokens[:, None], position[:, None], cache, nothing)
        finally:
            _ACTIVE.step = None
        self._fed += 1
        return logits[:, -1], {tap: state[:, -1] for tap, state in states.items()}

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only, in this order. Only rows that change their place are copied."""
        if not len(rows):
            # Buffers have grown to the most rows and the longest row there were: an idle model gives them back.
            self.clear()
            return
        kept = rows.cpu().numpy()
        gone = np.ones(len(self._fed), np.bool_)
        gone[kept] = False
        leaving = list(zip(self._shelf_of[gone].tolist(), self._slot_of[gone].tolist(), strict=True))
        # Rows that were not fed yet have nothing to move.
        moved = torch.from_numpy(np.flatnonzero((kept != np.arange(len(kept))) & (self._fed[kept] > 0))).to(rows.device)
        if len(moved):
            reached = int(self._fed[kept].max() - 1) // self._block + 1
            for blocks in (*self._keys, *self._values):
                for block in blocks[:reached]:
                    block[moved] = block[rows[moved]]
        self._shelf_of, self._slot_of = self._shelf_of[kept], self._slot_of[kept]
        self._fed, self._length = self._fed[kept], self._length[kept]
        for shelf, slot in leaving:
            self._shelves[shelf].held[slot].rows -= 1
        self._release({place for place in leaving if not self._shelves[place[0]].held[place[1]].rows})
        self._layout = None

    def reserve(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Make room for one more token of every row in a layer's own keys and values."""
        rows, needed = len(self._fed), int(self._fed.max()) // self._block + 1
        for layers, like in ((self._keys, keys), (self._values, values)):
            if layer == len(layers):
                layers.append([])
            blocks = layers[layer]
            capacity = len(blocks[0]) if blocks else 0
            if capacity < rows:
                capacity = max(rows, capacity * 3 // 2)
                blocks[:] = [torch.cat([old, old.new_zeros((capacity - len(old), *old.shape[1:]))]) for old in blocks]
            while len(blocks) < needed:
                # Zeros, because what a row has not reached is weighted by zero, which not-a-number would survive.
                blocks.append(like.new_zeros((capacity, like.shape[1], self._block, like.shape[3])))

    def _held(self, prompt: tuple[int, ...]) -> Held:
        shelf, slot = self._where[prompt]
        return self._shelves[shelf].held[slot]

    def _read(self, prompts: Sequence[tuple[int, ...]]) -> None:
        """Prefill prompts, those of one shelf together, and put them there."""
        by_width: dict[int, list[tuple[int, ...]]] = {}
        for prompt in prompts:
            by_width.setdefault(shelf_width(len(prompt)), []).append(prompt)
        for width, group in by_width.items():
            cache, _, logits, states = self._network.prefill(group, windows=False)
            number = next((number for number, shelf in enumerate(self._shelves) if shelf.width == width), len(self._shelves))
            if number == len(self._shelves):
                self._shelves.append(Shelf(width))
            for row, prompt in enumerate(group):
                at_end = {tap: state[row] for tap, state in states.items()}
                if prompt in self._where:
                    self._held(prompt).states.update(at_end)
                else:
                    slot = self._shelves[number].add(Held(prompt, logits[row], at_end), cache, row)
                    self._where[prompt] = number, slot

    def _release(self, places: set[tuple[int, int]]) -> None:
        # From the last slot down, so that a prompt that moves into a freed slot is never one that leaves later.
        for number, slot in sorted(places, reverse=True):
            shelf = self._shelves[number]
            last = len(shelf.held) - 1
            del self._where[shelf.held[slot].tokens]
            shelf.drop(slot)
            if slot != last:
                self._where[shelf.held[slot].tokens] = number, slot
                self._slot_of[(self._shelf_of == number) & (self._slot_of == last)] = slot


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """The library's attention hook. Outside a forked step it is the library's own ``sdpa``.

    ``query`` (rows, heads, 1, size), ``key`` and ``value`` (rows, key heads, 1, size) of the fed tokens.
    """
    step: _Step | None = getattr(_ACTIVE, "step", None)
    if step is None:
        result: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **options
        )
        return result
    unknown = [name for name in _UNKNOWN if options.get(name) is not None]
    if unknown or step.layer < 0:
        raise Unsupported(f"attention with {', '.join(unknown) or 'keys shared between layers'}")
    rows, heads, _, size = query.shape
    groups = heads // key.shape[1]
    layer, step.layer = step.layer, -1
    keys, values = step.keys[layer], step.values[layer]
    _store(keys, key[:, :, 0], step)
    _store(values, value[:, :, 0], step)
    scaled = query.reshape(rows, key.shape[1], groups, size) * (size**-0.5 if scaling is None else scaling)
    window = sliding_window if sliding_window is not None and step.reach >= sliding_window else None
    own = _own_part(scaled, [block[:rows] for block in keys], [block[:rows] for block in values], step, window)
    shared = _shared_part(scaled, step, layer, window)
    top = torch.maximum(own[0], shared[0])
    own_weight, shared_weight = torch.exp(own[0] - top), torch.exp(shared[0] - top)
    total = own[1] * own_weight + shared[1] * shared_weight
    mixed = own[2] * (own_weight / total) + shared[2] * (shared_weight / total)
    return mixed.to(query.dtype).reshape(rows, 1, heads, value.shape[3]), None


# Maximum and sum of exponentials (..., queries, 1), values weighted by them (..., queries, size); single precision or better.
_Part = tuple[Tensor, Tensor, Tensor]


def _weighted(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, sum of exponentials and exponentials of ``scores`` (..., keys), -inf where hidden, which they replace."""
    # A part may be hidden as a whole (a window that has left the prompt): then its maximum is finite and its weight 0.
    top = scores.amax(dim=-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).min)
    weights = scores.sub_(top).exp_()
    return top, weights.sum(dim=-1, keepdim=True), weights


def _store(blocks: list[Tensor], new: Tensor, step: _Step) -> None:
    """Put the fed token of each row, (rows, heads, size), at the row's next place."""
    for block, (members, positions) in zip(blocks, step.places, strict=False):
        if len(members):
            block[members, :, positions] = new if len(members) == len(new) else new[members]


def _own_part(query: Tensor, keys: list[Tensor], values: list[Tensor], step: _Step, window: int | None) -> _Part:
    """Rows over their own continuations; ``query`` (rows, key heads, groups, size)."""
    rows, heads, groups, _ = query.shape
    asked = query.flatten(0, 1)
    scores = torch.cat([torch.bmm(asked, block.flatten(0, 1).transpose(1, 2)) for block in keys[: step.blocks]], dim=2)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).view(rows, heads, groups, -1)
    scores.masked_fill_(step.future, -torch.inf)
    if window is not None:
        positions = torch.arange(scores.shape[3], device=query.device)
        scores.masked_fill_((positions <= step.fed[:, None] - window)[:, None, None], -torch.inf)
    top, total, weights = _weighted(scores)
    shares: tuple[Tensor, ...] = torch.tensor_split(weights.flatten(0, 1).to(values[0].dtype), step.blocks, dim=2)
    mixed = torch.bmm(shares[0], values[0].flatten(0, 1))
    for share, block in zip(shares[1:], values[1 : step.blocks], strict=True):
        mixed = torch.baddbmm(mixed, share, block.flatten(0, 1))
    return top, total, mixed.to(scores.dtype).view(rows, heads, groups, -1)


def _shared_part(query: Tensor, step: _Step, layer: int, window: int | None) -> _Part:
    """Rows over the prompts they share."""
    _, heads, groups, size = query.shape
    parts = []
    for grid in step.grids:
        prompts, rows = grid.rows.shape
        keys, values = grid.shelf.keys[layer][:prompts].flatten(0, 1), grid.shelf.values[layer][:prompts].flatten(0, 1)
        asked = query[grid.rows].transpose(1, 2).reshape(prompts * heads, rows * groups, size)
        scores = torch.bmm(asked, keys.transpose(1, 2)).view(prompts, heads, rows, groups, -1)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        if grid.hidden is not None:
            scores.masked_fill_(grid.hidden, -torch.inf)
        if window is not None:
            reached = (grid.lengths[:, None] + step.fed[grid.rows])[:, None, :, None, None] - window
            scores.masked_fill_(torch.arange(grid.shelf.width, device=query.device) <= reached, -torch.inf)
        top, total, weights = _weighted(scores)
        mixed = torch.bmm(weights.view(prompts * heads, rows * groups, -1).to(values.dtype), values).to(scores.dtype)
        part = (top, total, mixed.view(prompts, heads, rows, groups, -1))
        parts.append([one.transpose(1, 2).flatten(0, 1) for one in part])
    merged = [torch.cat(tensors) if len(parts) > 1 else tensors[0] for tensors in zip(*parts, strict=True)]
    if step.place is not None:
        merged = [tensor[step.place] for tensor in merged]
    return merged[0], merged[1], merged[2]


def check(network: Network, reference: Repeated) -> None:
    """Switch a model to forked attention, or raise Unsupported and leave it as it was.

    Beyond what the configuration tells, both paths decode a few tokens and must agree: an attention variant that nobody thought
    of here shows up as a difference, not as wrong answers.
    """
    model, config = network.model, network.config
    types = set(getattr(config, "layer_types", None) or ["full_attention"])
    if not types <= {"full_attention", "sliding_attention"} or getattr(config, "attention_chunk_size", None):
        raise Unsupported(f"attention of the types {', '.join(sorted(types))}")
    if model.config._attn_implementation not in ("sdpa", IMPLEMENTATION):
        raise Unsupported(f"the attention implementation {model.config._attn_implementation}")
    AttentionInterface.register(IMPLEMENTATION, attend)
    AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
    model.set_attn_implementation(IMPLEMENTATION)
    try:
        _compare(network, reference)
    except Unsupported:
        model.set_attn_implementation("sdpa")
        raise
    except Exception as error:
        model.set_attn_implementation("sdpa")
        raise Unsupported(f"a trial failed: {error}") from error


def _compare(network: Network, reference: Repeated) -> None:
    forked = Forked(network)
    vocabulary = network.config.vocab_size
    prompts = [[(7 * place + 11) % vocabulary for place in range(length)] for length in (9, 5)]
    tokens = torch.arange(3, 7, device=network.device) % vocabulary
    with torch.inference_mode():
        results = []
        for path in (reference, forked):
            path.admit(prompts, [2, 2])
            results.append([path.step(tokens + fed)[0].double() for fed in range(2)][-1])
            path.clear()
    difference = (results[0] - results[1]).norm() / results[0].norm()
    if not difference < (1e-3 if network.model.dtype.itemsize >= 4 else 0.05):
        raise Unsupported(f"a trial disagreed with the library's attention by {difference:.1e}")

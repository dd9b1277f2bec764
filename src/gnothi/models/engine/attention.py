"""Attention of rows over what they share and what is their own, joined by one softmax.

Each part gives its maximum, its sum of exponentials and its weighted values, which add up after rescaling. The part over a
prompt is one matrix product for all of the rows that read it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from gnothi.models.engine.prompts import AttentionTile, Level

IMPLEMENTATION = "gnothi_forked"
# What an attention layer may pass that changes its result and that the joint softmax does not know.
_UNKNOWN = ("softcap", "s_aux", "sinks", "position_bias", "indices", "block_indices")
# Attention scores that are held at once, in numbers: what stays in a processor's cache, and 256 MB on an accelerator.
_SCORES, _SCORES_ON_DEVICE = 2**19, 2**26


class Unsupported(Exception):
    """This architecture's attention is not covered; use the repeated cache."""


class Part(NamedTuple):
    """Maximum and sum of exponentials (rows, key heads, queries, 1), and the values weighted by them (..., size).

    ``queries`` runs over the query heads of a key head and, inside those, over the tokens a row feeds.
    """

    top: Tensor
    total: Tensor
    mixed: Tensor


class Own(Protocol):
    """A row's attention over its own tokens, the fed ones included."""

    def receive(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Keys and values of the fed tokens, (rows, key heads, tokens, size)."""
        ...

    def part(self, layer: int, query: Tensor, window: int | None) -> Part: ...


class Step:
    """What the attention of every layer needs during one pass. ``position`` (rows, tokens) of the fed tokens, ``reach`` the
    largest of them."""

    def __init__(self, own: Own, levels: Sequence[Level], position: Tensor, reach: int) -> None:
        self.own = own
        self.levels = levels
        self.position = position
        self.reach = reach
        self.layer = -1


class Handing:
    """Stands for a model's cache during a pass: hands the new keys on and notes which layer's attention comes next."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        self._step.layer = layer_idx
        self._step.own.receive(layer_idx, key_states, value_states)
        return key_states, value_states


def librarys(step: Step) -> Handing:
    """The same as a cache of the library, which its models expect."""
    from transformers import Cache

    class StepCache(Handing, Cache):
        def __init__(self) -> None:
            Cache.__init__(self, layers=[])
            Handing.__init__(self, step)

    return StepCache()


_ACTIVE = threading.local()


@contextmanager
def active(step: Step) -> Iterator[None]:
    """Inside, the attention of models that were switched to ``IMPLEMENTATION`` is that of the step."""
    _ACTIVE.step = step
    try:
        yield
    finally:
        _ACTIVE.step = None


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
    """The library's attention hook. Outside a step it is the library's own ``sdpa``.

    ``query`` (rows, heads, tokens, size), ``key`` and ``value`` (rows, key heads, tokens, size) of the fed tokens.
    """
    step: Step | None = getattr(_ACTIVE, "step", None)
    if step is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        result: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **options
        )
        return result
    unknown = [name for name in _UNKNOWN if options.get(name) is not None]
    if unknown or step.layer < 0:
        raise Unsupported(f"attention with {', '.join(unknown) or 'keys shared between layers'}")
    rows, heads, tokens, size = query.shape
    layer, step.layer = step.layer, -1
    scaled = query.reshape(rows, key.shape[1], -1, size) * (size**-0.5 if scaling is None else scaling)
    window = sliding_window if sliding_window is not None and step.reach >= sliding_window else None
    joint = step.own.part(layer, scaled, window)
    for level in step.levels:
        joint = _joined(joint, _shared(level, layer, scaled, step, window))
    mixed = (joint.mixed / joint.total).to(query.dtype)
    return mixed.view(rows, heads, tokens, value.shape[3]).transpose(1, 2).contiguous(), None


def weighted(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, sum of exponentials and exponentials of ``scores`` (..., keys), -inf where hidden, which they replace."""
    # A part may be hidden as a whole (a window that has left the prompt): then its maximum is finite and its weight 0.
    top = scores.amax(dim=-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).min)
    weights = scores.sub_(top).exp_()
    return top, weights.sum(dim=-1, keepdim=True), weights


def wide(scores: Tensor) -> Tensor:
    """In single precision or better, as softmax needs it."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _joined(first: Part, second: Part) -> Part:
    top = torch.maximum(first.top, second.top)
    one, two = torch.exp(first.top - top), torch.exp(second.top - top)
    return Part(top, first.total * one + second.total * two, first.mixed * one + second.mixed * two)


def _shared(level: Level, layer: int, query: Tensor, step: Step, window: int | None) -> Part:
    """Rows over one level of the prompts they share."""
    parts = [_over(tile, layer, query, step, window) for tile in level.tiles]
    if level.place is None:
        return parts[0] if len(parts) == 1 else Part(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))
    # One cell more, without weight, for the rows that have no part here.
    _, heads, queries, _ = query.shape
    top = query.new_full((1, heads, queries, 1), torch.finfo(parts[0].top.dtype).min, dtype=parts[0].top.dtype)
    nothing = Part(top, torch.zeros_like(top), top.new_zeros((1, heads, queries, parts[0].mixed.shape[3])))
    return Part(*(torch.cat(tensors)[level.place] for tensors in zip(*parts, nothing, strict=True)))


def _over(tile: AttentionTile, layer: int, query: Tensor, step: Step, window: int | None) -> Part:
    """The cells of a grid over its prompts: (prompts · rows of each, heads, queries, ...)."""
    keys, values = tile.at(layer)
    prompts, heads, width, size = keys.shape
    keys, values = keys.flatten(0, 1).transpose(1, 2), values.flatten(0, 1)
    selected = query[None] if tile.rows is None else query[tile.rows]
    rows, queries = selected.shape[1], selected.shape[3]
    selected = selected.transpose(1, 2).reshape(prompts * heads, rows * queries, size)
    reached = None
    if window is not None:
        position = (step.position[None] if tile.rows is None else step.position[tile.rows]) - tile.starts[:, None, None]
        groups = queries // position.shape[2]
        reached = (position - window)[:, :, None].expand(-1, -1, groups, -1).reshape(prompts, 1, rows * queries, 1)
    pieces = []
    scores_at_once = _SCORES if selected.device.type == "cpu" else _SCORES_ON_DEVICE
    most = max(scores_at_once // (prompts * heads * width), 16)
    for start in range(0, rows * queries, most):
        scores = wide(torch.bmm(selected[:, start : start + most], keys))
        if tile.hidden is not None or reached is not None:
            shaped = scores.view(prompts, heads, -1, width)
            if tile.hidden is not None:
                shaped.masked_fill_(tile.hidden[:, None, None], -torch.inf)
            if reached is not None:
                outside = torch.arange(width, device=query.device) <= reached[:, :, start : start + most]
                shaped.masked_fill_(outside, -torch.inf)
        top, total, weights = weighted(scores)
        pieces.append((top, total, torch.bmm(weights.to(values.dtype), values).to(scores.dtype)))
    whole = pieces[0] if len(pieces) == 1 else [torch.cat(tensors, dim=1) for tensors in zip(*pieces, strict=True)]
    return Part(*(one.view(prompts, heads, rows, queries, -1).transpose(1, 2).flatten(0, 1) for one in whole))


class Fed:
    """Rows that feed several tokens and hold none yet, padded on the left: attention over the fed tokens alone.

    ``padding`` (rows,) counts the padding. What was received lies in ``keys`` and ``values``, per layer.
    """

    def __init__(self, padding: Tensor, tokens: int) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        place = torch.arange(tokens, device=padding.device)
        self._ahead = place[:, None] - place
        self._hidden = (self._ahead < 0) | (place < padding[:, None, None])

    def receive(self, layer: int, keys: Tensor, values: Tensor) -> None:
        assert layer == len(self.keys)
        self.keys.append(keys)
        self.values.append(values)

    def part(self, layer: int, query: Tensor, window: int | None) -> Part:
        keys, values = self.keys[layer].flatten(0, 1), self.values[layer].flatten(0, 1)
        rows, heads, queries, _ = query.shape
        tokens = keys.shape[1]
        scores = wide(torch.bmm(query.flatten(0, 1), keys.transpose(1, 2)))
        shaped = scores.view(rows, heads, queries // tokens, tokens, tokens)
        shaped.masked_fill_(self._hidden[:, None, None], -torch.inf)
        if window is not None:
            shaped.masked_fill_(self._ahead >= window, -torch.inf)
        top, total, weights = weighted(scores)
        mixed = torch.bmm(weights.to(values.dtype), values).to(scores.dtype)
        return Part(*(one.view(rows, heads, queries, -1) for one in (top, total, mixed)))

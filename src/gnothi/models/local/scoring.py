"""Log-probabilities of given continuations: each prompt is read once, its continuations in one pass over its cache."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gnothi.models.local.passes import Network

# Logits of a pass that are held at once, in numbers: 64M floats are 256 MB.
_NUMBERS = 64_000_000


def score(
    network: Network, prompts: Sequence[Sequence[int]], continuations: Sequence[Sequence[Sequence[int]]]
) -> list[list[list[float]]]:
    """Log-probability (natural logarithm) of every token of ``continuations[i][j]`` after prompt i."""
    cache, mask, logits, _ = network.prefill(prompts)
    first = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)
    results = [[[first[i, tokens[0]].item()] if tokens else [] for tokens in given] for i, given in enumerate(continuations)]
    longer = [(i, j, tokens) for i, given in enumerate(continuations) for j, tokens in enumerate(given) if len(tokens) > 1]
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=logits.device)
    for chunk in _chunks(longer, _NUMBERS // logits.shape[-1]):
        index = torch.tensor([i for i, _, _ in chunk], device=logits.device)
        width = max(len(tokens) for _, _, tokens in chunk) - 1
        # Padding on the right: what follows a continuation's last token cannot be seen by it.
        padded = [[*tokens[:-1], *[0] * (width + 1 - len(tokens))] for _, _, tokens in chunk]
        fed = torch.tensor(padded, device=logits.device)
        seen = torch.cat([mask[index], mask.new_ones(fed.shape)], dim=1) if mask is not None else None
        position = lengths[index][:, None] + torch.arange(width, device=logits.device)
        following, _ = network.forward(fed, position, _selected(cache, index), seen)
        logprobs = torch.log_softmax(following.to(first.dtype), dim=-1)
        for row, (i, j, tokens) in enumerate(chunk):
            targets = torch.tensor(tokens[1:], device=logits.device)
            results[i][j] += logprobs[row, : len(targets)].gather(1, targets[:, None])[:, 0].tolist()
    return results


def _chunks(items: Sequence[tuple[int, int, Sequence[int]]], budget: int) -> Iterator[Sequence[tuple[int, int, Sequence[int]]]]:
    """Runs of items whose padded token count stays within ``budget`` (at least one item each)."""
    starts, width = [0], 0
    for at, (_, _, tokens) in enumerate(items):
        width = max(width, len(tokens) - 1)
        if at > starts[-1] and (at + 1 - starts[-1]) * width > budget:
            starts.append(at)
            width = len(tokens) - 1
    for start, end in pairwise([*starts, len(items)]):
        if end > start:
            yield items[start:end]


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

"""Log-probabilities of given continuations: each prompt is read once, all continuations follow it in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from gnothi.models.engine.path import DecodePath

# Logits of a pass that are held at once, in numbers: 64M floats are 256 MB.
_NUMBERS = 64_000_000


def score(
    path: DecodePath, prompts: Sequence[tuple[int, ...]], continuations: Sequence[Sequence[Sequence[int]]]
) -> list[list[list[float]]]:
    """Log-probability (natural logarithm) of every token of ``continuations[i][j]`` after prompt i."""
    reading = path.read(prompts)
    try:
        first = _log_softmax(reading.logits)
        results = [[first[i, list(tokens[:1])].tolist() for tokens in given] for i, given in enumerate(continuations)]
        longer = [(i, j, tokens) for i, given in enumerate(continuations) for j, tokens in enumerate(given) if len(tokens) > 1]
        for chunk in _chunks(longer, max(1, _NUMBERS // first.shape[-1])):
            following = reading.follow([i for i, _, _ in chunk], [tokens[:-1] for _, _, tokens in chunk])
            for (i, j, tokens), logits in zip(chunk, following, strict=True):
                targets = torch.tensor(tokens[1:], device=logits.device)
                results[i][j] += _log_softmax(logits).gather(1, targets[:, None])[:, 0].tolist()
    finally:
        reading.close()
    return results


def score_next(
    path: DecodePath, prompts: Sequence[tuple[int, ...]], continuations: Sequence[Sequence[Sequence[int]]], tokens: int
) -> list[list[list[float]]]:
    """``score`` where no continuation is longer than one token: prompts are only read, about ``tokens`` tokens at a time."""
    results: list[list[list[float]]] = [[] for _ in prompts]
    for places, logits in path.ahead(prompts, tokens):
        # Read off at once: a large vocabulary's logits of all prompts would not fit.
        given = [[token for one in continuations[place] for token in one] for place in places]
        widest = max(map(len, given))
        wanted = torch.tensor([[*row, *[0] * (widest - len(row))] for row in given], dtype=torch.int64, device=logits.device)
        for place, row in zip(places, _log_softmax(logits).gather(1, wanted).tolist(), strict=True):
            numbers = iter(row)
            results[place] = [[next(numbers) for _ in one] for one in continuations[place]]
    return results


def _log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)


def _chunks(items: Sequence[tuple[int, int, Sequence[int]]], budget: int) -> Iterator[Sequence[tuple[int, int, Sequence[int]]]]:
    """Runs of items whose padded token count stays within ``budget`` (at least one item each), long ones together."""
    ordered = sorted(items, key=lambda item: len(item[2]))
    starts = [0]
    for at, (_, _, tokens) in enumerate(ordered):
        if at > starts[-1] and (at + 1 - starts[-1]) * (len(tokens) - 1) > budget:
            starts.append(at)
    for start, end in pairwise([*starts, len(ordered)]):
        if end > start:
            yield ordered[start:end]

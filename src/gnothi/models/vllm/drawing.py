"""From what vLLM sampled to generations, and to the sequences that are fed again for their states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnothi.errors import ModelUnavailable
from gnothi.models.engine.text import CONTEXT_TOKENS, Detokenizer, StopWatch, write_out
from gnothi.types import Finish, Generation, Position

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One continuation and its tokens, the one that ended it included."""

    generation: Generation
    ids: Ids


def seed_of(seed: int | None) -> int:
    """The seed for vLLM, which gives sample i of a request the seed + i: mixed, so that requests with neighbouring seeds share
    no samples. Below 2**62, so that adding to it stays within 64 bits."""
    mixed = np.random.SeedSequence((seed or 0) & (2**64 - 1)).generate_state(1, np.uint64)[0]
    return int(mixed) >> 2


def read(
    completion: Any, prompt: Ids, eos: Sequence[int], detokenizer: Detokenizer, watch: StopWatch | None
) -> Drawn | ModelUnavailable:
    """One of vLLM's ``CompletionOutput`` as a generation. The text is our own, so that a stop string cuts it as it does in
    every backend: vLLM only stops early."""
    ids = [int(token) for token in completion.token_ids]
    context = prompt[-CONTEXT_TOKENS:]
    finish: Finish = "stop" if completion.finish_reason == "stop" else "length"
    tail = ""
    for count, token in enumerate(ids, start=1):
        if token in eos:
            ids, finish = ids[:count], "eos"
            break
        if watch is not None:
            tail, hit = watch.look(tail, token, context, ids[:count])
            if hit:
                ids, finish = ids[:count], "stop"
                break
    logprobs = [float(found[token].logprob) for token, found in zip(ids, completion.logprobs, strict=False)]
    if not all(map(math.isfinite, logprobs)):
        return ModelUnavailable("the model's probabilities are not finite numbers; try <--set model.dtype=float32>.")
    shown = ids[:-1] if finish == "eos" else ids
    text, tokens, cut = write_out(detokenizer, watch, context, shown, logprobs, [None] * len(shown))
    return Drawn(Generation(text, tokens, "stop" if cut else finish, len(prompt), len(ids)), tuple(ids))


def fed(prompt: Ids, drawn: Drawn, position: Position, eos: Sequence[int]) -> Ids:
    """The sequence whose last token has the state that ``position`` means."""
    if position == "last":
        return prompt + drawn.ids
    before = prompt + drawn.ids[:-1]
    return before if position == "predicting" else (*before, eos[0])

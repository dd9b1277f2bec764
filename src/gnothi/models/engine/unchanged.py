"""What a model says of a short text, in plain passes: whether what was done to it left that the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

TOKENS = 8
# How far logits may lie apart, in their standard deviation: passes in half precision do.
_CLOSE = 0.1


class ReferenceLogits:
    """``logits`` (tokens, vocabulary) of the model as it is now."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._ids = _plain_tokens(model).to(model.device)
        self.logits = self._read(self._ids)

    def same(self, model: Any = None, tokens: int = TOKENS) -> bool:
        """Whether it still says so of the text's first ``tokens``, or another model does."""
        now = self._read(self._ids[:, :tokens], model)
        return float((now - self.logits[:tokens]).abs().max()) <= _CLOSE * float(self.logits.std())

    def _read(self, ids: Tensor, model: Any = None) -> Tensor:
        model = self._model if model is None else model
        replies_apart = getattr(model.config, "is_encoder_decoder", False)
        given = {"input_ids": self._ids, "decoder_input_ids": ids} if replies_apart else {"input_ids": ids}
        with torch.inference_mode():
            logits: Tensor = model(**given, use_cache=False).logits[0].float()
        return logits


def _plain_tokens(model: Any) -> Tensor:
    """(1, tokens) that stand for no image and the like."""
    table = int(model.get_input_embeddings().weight.shape[0])
    special = {value for value in _numbers(model.config.to_dict()) if value < table}
    plain = [token for token in range(table) if token not in special] or [0]
    return torch.tensor([(plain[len(plain) // 2 :] * TOKENS)[:TOKENS]])


def _numbers(told: Any) -> Iterator[int]:
    """All that could be a token's number."""
    if isinstance(told, dict | list | tuple):
        for one in told.values() if isinstance(told, dict) else told:
            yield from _numbers(one)
    elif isinstance(told, int):
        yield told

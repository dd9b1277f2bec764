"""The logits of a model for a short text, in plain passes, to check that a change of the model keeps them."""

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
        """Whether the model, or another one, still gives these logits for the text's first ``tokens``."""
        now = self._read(self._ids[:, :tokens], model)
        return float((now - self.logits[:tokens]).abs().max()) <= _CLOSE * float(self.logits.std())

    def _read(self, ids: Tensor, model: Any = None) -> Tensor:
        model = self._model if model is None else model
        replies_apart = getattr(model.config, "is_encoder_decoder", False)
        inputs = {"input_ids": self._ids, "decoder_input_ids": ids} if replies_apart else {"input_ids": ids}
        with torch.inference_mode():
            logits: Tensor = model(**inputs, use_cache=False).logits[0].float()
        return logits


def _plain_tokens(model: Any) -> Tensor:
    """(1, tokens) that stand for no image and the like."""
    table = int(model.get_input_embeddings().weight.shape[0])
    special = {value for value in _numbers(model.config.to_dict()) if value < table}
    plain = [token for token in range(table) if token not in special] or [0]
    return torch.tensor([(plain[len(plain) // 2 :] * TOKENS)[:TOKENS]])


def _numbers(value: Any) -> Iterator[int]:
    """All that could be a token's number."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value

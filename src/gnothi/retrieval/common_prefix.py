"""One query and many texts with a causal cross-encoder: what all pairs begin with, the query above all, is read once.

A causal model's state after a prefix does not depend on what follows, so the scores are those of reading every pair in full,
up to rounding; the work is that of the texts alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

Row = list[int]
_WORTH = 8
"""Tokens in common that are worth a pass of their own."""


class CommonPrefix:
    """Scores pairs of one query with the given CrossEncoder; at most ``batch_tokens`` tokens are in memory at a time."""

    def __init__(self, model: Any, batch_tokens: int) -> None:
        self._model = model
        self._transformer, self._logit_score = model[0].model, model[1]
        self._batch_tokens = batch_tokens

    @staticmethod
    def serves(model: Any) -> bool:
        """Whether the model is a causal language model scored by a logit whose layers all attend to everything before."""
        modules = [type(module).__name__ for module in model]
        config = model[0].model.config if modules else None
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        sliding = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
        return modules == ["Transformer", "LogitScore"] and kinds == {"full_attention"} and not sliding

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """The score of each text, in order."""
        import torch

        features = self._model.preprocess([(query, text) for text in texts])
        rows = [ids[mask.bool()].tolist() for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)]
        common = shared(rows) if len(rows) > 1 else 0
        common = common if common >= _WORTH else 0
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        scores = [0.0] * len(rows)
        with torch.inference_mode():
            cache = self._read(rows[0][:common]) if common else None
            while order:
                count = max(1, self._batch_tokens // len(rows[order[0]]))
                batch, order = order[:count], order[count:]
                given = self._batch([rows[place][common:] for place in batch], cache, common)
                for place, score in zip(batch, given.tolist(), strict=True):
                    scores[place] = score
        return scores

    def _read(self, prefix: Row) -> Any:
        import torch

        ids = torch.tensor([prefix], device=self._model.device)
        return self._transformer(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values

    def _batch(self, rows: Sequence[Row], cache: Any, common: int) -> Any:
        """Scores of rows that follow the prefix in ``cache``, shape (rows,)."""
        import torch

        width = max(map(len, rows))
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), common + width, dtype=torch.long)
        mask[:, :common] = 1
        for number, row in enumerate(rows):  # on the left, as the library pads: the last position is a token everywhere
            ids[number, width - len(row) :] = torch.tensor(row)
            mask[number, common + width - len(row) :] = 1
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, common:]
        given: dict[str, Any] = {}
        if cache is not None:
            given["past_key_values"] = copy.deepcopy(cache)
            given["past_key_values"].batch_repeat_interleave(len(rows))
        device = self._model.device
        logits = self._transformer(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=places.to(device),
            use_cache=cache is not None,
            logits_to_keep=1,
            **given,
        ).logits
        return self._logit_score({self._logit_score.module_input_name: logits})["scores"].squeeze(1).float().cpu()


def shared(rows: Sequence[Row]) -> int:
    """How many tokens all rows begin with, leaving one of each."""
    low, high = min(rows), max(rows)
    same = next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return max(0, min(same, min(map(len, rows)) - 1))

"""One query and many texts with a causal cross-encoder: what all pairs begin with, the query above all, is read once.

A causal model's state after a prefix does not depend on what follows, so the scores are those of reading every pair in full,
up to rounding; the work is that of the texts alone. Gradients pass through, so that training profits, too.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

Row = list[int]
_WORTH = 8
"""Tokens in common that are worth a pass of their own."""


class CommonPrefix:
    """Scores pairs with the given CrossEncoder; at most ``batch_tokens`` tokens are in memory at a time."""

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
        """The score of each text, in order, without gradients."""
        import torch

        rows = self._rows(query, texts)
        common = shared(rows) if len(rows) > 1 else 0
        common = common if common >= _WORTH else 0
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        scores = [0.0] * len(rows)
        with torch.inference_mode():
            cache = self._read([rows[0][:common]]) if common else None
            while order:
                count = max(1, self._batch_tokens // len(rows[order[0]]))
                batch, order = order[:count], order[count:]
                again = copy.deepcopy(cache)
                if again is not None:
                    again.batch_repeat_interleave(len(batch))
                given = self._go_on([rows[place][common:] for place in batch], [common] * len(batch), again)
                for place, score in zip(batch, given.tolist(), strict=True):
                    scores[place] = score
        return scores

    def logits(self, asked: Sequence[tuple[str, Sequence[str]]]) -> Any:
        """The scores of all texts of all queries, in order, shape (texts,), with gradients; the same number of texts each."""
        groups = [self._rows(query, texts) for query, texts in asked]
        common = [shared(rows) for rows in groups]
        if min(common) == 0:
            return self._go_on([row for rows in groups for row in rows], [0] * sum(map(len, groups)), None)
        cache = self._read([rows[0][:length] for rows, length in zip(groups, common, strict=True)])
        cache.batch_repeat_interleave(len(groups[0]))
        rest = [row[length:] for rows, length in zip(groups, common, strict=True) for row in rows]
        return self._go_on(rest, [length for rows, length in zip(groups, common, strict=True) for _ in rows], cache)

    def _rows(self, query: str, texts: Sequence[str]) -> list[Row]:
        features = self._model.preprocess([(query, text) for text in texts])
        return [ids[mask.bool()].tolist() for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)]

    def _read(self, prefixes: Sequence[Row]) -> Any:
        ids, mask = self._padded(prefixes)
        return self._transformer(
            input_ids=ids, attention_mask=mask, position_ids=_places(mask), use_cache=True, logits_to_keep=1
        ).past_key_values

    def _go_on(self, rows: Sequence[Row], common: Sequence[int], cache: Any) -> Any:
        """Scores of rows that follow prefixes of ``common`` tokens, which stand in ``cache``, shape (rows,)."""
        import torch

        ids, mask = self._padded(rows)
        width = ids.shape[1]
        before = max(common)
        if before:
            stands = torch.arange(before, device=mask.device) >= before - torch.tensor(common, device=mask.device)[:, None]
            mask = torch.cat([stands.long(), mask], dim=1)
        logits = self._transformer(
            input_ids=ids,
            attention_mask=mask,
            position_ids=_places(mask)[:, -width:],
            use_cache=cache is not None,
            logits_to_keep=1,
            **({} if cache is None else {"past_key_values": cache}),
        ).logits
        return self._logit_score({self._logit_score.module_input_name: logits})["scores"].squeeze(1).float()

    def _padded(self, rows: Sequence[Row]) -> tuple[Any, Any]:
        """Tokens and mask, padded on the left, as the library does: the last position is a token everywhere."""
        import torch

        width = max(map(len, rows))
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, width - len(row) :] = torch.tensor(row)
            mask[number, width - len(row) :] = 1
        return ids.to(self._model.device), mask.to(self._model.device)


def _places(mask: Any) -> Any:
    return (mask.cumsum(1) - 1).clamp(min=0)


def shared(rows: Sequence[Row]) -> int:
    """How many tokens all rows begin with, leaving one of each."""
    low, high = min(rows), max(rows)
    same = next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return max(0, min(same, min(map(len, rows)) - 1))

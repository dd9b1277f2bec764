"""Binary cross-entropy over pairs that share their queries: each query is read once, with its texts behind it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any


def pair_loss(model: Any) -> Any:
    """The loss for CrossEncoderTrainer: the library's own, or for a causal model the same with a fraction of the work."""
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from torch import nn

    from gnothi.retrieval.rerank import CommonPrefix
    from gnothi.training import processes

    if processes.count() > 1 or not CommonPrefix.serves(model):  # several wrap the model, whose insides are read here
        return BinaryCrossEntropyLoss(model)

    class QueryOnceLoss(nn.Module):
        """Rows whose queries are equal and stand one after the other are read together."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.cross_entropy = nn.BCEWithLogitsLoss()

        def forward(self, inputs: Sequence[Sequence[str]], labels: Any, prompt: Any = None, task: Any = None) -> Any:  # noqa: ARG002
            import torch

            queries, texts = inputs
            groups = [list(rows) for _, rows in groupby(range(len(queries)), key=queries.__getitem__)]
            reading = CommonPrefix(self.model, 0)
            # Groups of one size go together, whatever their place.
            scores: dict[int, Any] = {}
            for size in sorted({len(rows) for rows in groups}):
                alike = [rows for rows in groups if len(rows) == size]
                given = reading.logits([(queries[rows[0]], [texts[row] for row in rows]) for rows in alike])
                scores.update(zip((row for rows in alike for row in rows), given, strict=True))
            logits = torch.stack([scores[row] for row in range(len(queries))])
            return self.cross_entropy(logits, labels.to(logits))

    return QueryOnceLoss()

"""Documents into training rows: several to a row, each blind to the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gnothi.lab.curriculum import Segment

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

IGNORED = -100


def encode(tokenizer: PreTrainedTokenizerFast, documents: list[list[Segment]]) -> list[tuple[list[int], list[int]]]:
    """Token ids and labels of each document; labels are ``IGNORED`` where the model is not trained to write."""
    segments = [segment for document in documents for segment in document]
    encodings = iter(tokenizer.backend_tokenizer.encode_batch([text for text, _ in segments], add_special_tokens=False))
    encoded = []
    for document in documents:
        ids: list[int] = []
        labels: list[int] = []
        for _, learnt in document:
            piece = next(encodings).ids
            ids += piece
            labels += piece if learnt else [IGNORED] * len(piece)
        encoded.append((ids, labels))
    return encoded


@dataclass(frozen=True)
class Batch:
    """Shapes (rows, width). ``documents`` numbers the document of each token, -1 for padding."""

    inputs: torch.Tensor
    labels: torch.Tensor
    documents: torch.Tensor

    def mask(self) -> torch.Tensor:
        """Boolean attention mask, shape (rows, 1, width, width): causal, within the document, padding sees itself."""
        import torch

        width = self.inputs.shape[1]
        same = self.documents[:, :, None] == self.documents[:, None, :]
        return (same & torch.ones(width, width, dtype=torch.bool, device=same.device).tril()).unsqueeze(1)

    def to(self, device: torch.device) -> Batch:
        return Batch(self.inputs.to(device), self.labels.to(device), self.documents.to(device))


def pack(encoded: Iterator[tuple[list[int], list[int]]], rows: int, width: int, patience: int = 12) -> Batch:
    """Each document into the first row with room for it, until ``patience`` documents in a row found none.

    A document longer than a row is dropped, never cut."""
    import torch

    inputs = torch.zeros(rows, width, dtype=torch.long)
    labels = torch.full((rows, width), IGNORED)
    documents = torch.full((rows, width), -1)
    filled = [0] * rows
    number = refused = 0
    for ids, targets in encoded:
        row = next((row for row in range(rows) if filled[row] + len(ids) <= width), None)
        if row is None:
            refused += len(ids) <= width
            if refused == patience:
                break
            continue
        refused = 0
        span = slice(filled[row], filled[row] + len(ids))
        inputs[row, span] = torch.tensor(ids)
        labels[row, span] = torch.tensor(targets)
        documents[row, span] = number
        filled[row] += len(ids)
        number += 1
    return Batch(inputs, labels, documents)

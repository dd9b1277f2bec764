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


def pack(encoded: Iterator[tuple[list[int], list[int]]], rows: int, width: int) -> Batch:
    """Fill rows one after the other; a document longer than a row is dropped, one that does not fit starts the next row."""
    import torch

    inputs = torch.zeros(rows, width, dtype=torch.long)
    labels = torch.full((rows, width), IGNORED)
    documents = torch.full((rows, width), -1)
    row = position = number = 0
    for ids, targets in encoded:
        if len(ids) > width:
            continue
        if position + len(ids) > width:
            row, position = row + 1, 0
            if row == rows:
                break
        span = slice(position, position + len(ids))
        inputs[row, span] = torch.tensor(ids)
        labels[row, span] = torch.tensor(targets)
        documents[row, span] = number
        position += len(ids)
        number += 1
    return Batch(inputs, labels, documents)

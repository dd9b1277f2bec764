"""The lab model's tokenizer: one token per word, and one per name of the world, even where a name has several words.

A unigram tokenizer with equal piece scores picks the segmentation with the fewest pieces, so that "Ada Brolm" is one
token wherever it stands and decoding gives the text back with its spaces. One token a name spares a small model the work
of binding the parts of a name to each other (``docs/results/laboratory.md`` has the measurements behind this).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gnothi.lab import language
from gnothi.lab.curriculum import Segment
from gnothi.lab.world import World

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast


TASKS = ("reason", "answer", "know", "decompose", "equivalent", "useful", "describe")
SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>", "<passage>", "<question>", "<choices>", *(f"<{task}>" for task in TASKS))
_WORD = re.compile(r"#\d+|[A-Za-z0-9']+|[^\sA-Za-z0-9']")
_PUNCTUATION = (".", ",", "?", ":", "/")


def vocabulary(world: World) -> list[str]:
    """Pieces in a stable order: words with their leading space mark, punctuation without, names last."""
    texts: list[str] = []
    for relation in language.RELATIONS:
        texts += [*relation.statements, *relation.questions, relation.phrase]
        texts += [language.question_with(relation, "the", variant) for variant in range(len(relation.questions))]
    texts += [*language.YES_NO_SAME.values(), *language.YES_NO_FACT.values()]
    texts += [template for variants in language.COMPARISON.values() for template in variants]
    texts += [language.CONCLUSION, language.KNOWN, language.UNKNOWN, language.UNANSWERABLE, "yes no Yes No the of in from city"]
    texts += ["The Spouse the spouse : / 1. 2. 3. #1 #2 #3 nothing is known about"]
    words = {word for text in texts for word in _WORD.findall(re.sub(r"\{\w\}", " ", text)) if word not in _PUNCTUATION}
    names = [name for kind in world.values for name in world.values[kind]]
    pieces = (
        [f"▁{word}" for word in sorted(words)] + ["▁:", "▁/", *_PUNCTUATION] + [f"▁{name.replace(' ', '▁')}" for name in names]
    )
    return list(dict.fromkeys(pieces))


def build_tokenizer(world: World) -> PreTrainedTokenizerFast:
    """A ``transformers`` fast tokenizer over the world's words and names. Unknown words become ``<unk>``."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from transformers import PreTrainedTokenizerFast

    pieces = [*SPECIAL, *vocabulary(world)]
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in pieces], unk_id=SPECIAL.index("<unk>"), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=False, right=True)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(
        [AddedToken(token, lstrip=True, rstrip=False, normalized=False, special=True) for token in SPECIAL]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", SPECIAL.index("<bos>"))]
    )
    build: Any = PreTrainedTokenizerFast
    built: PreTrainedTokenizerFast = build(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<bos>",
        eos_token="<eos>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    return built


def name_ids(world: World, tokenizer: PreTrainedTokenizerFast, *kinds: str) -> list[int]:
    """Token ids of the world's values of these types (by default all: names, years, professions, industries), in order."""
    pieces = [f"▁{name.replace(' ', '▁')}" for kind in kinds or world.values for name in world.values[kind]]
    ids: Any = tokenizer.convert_tokens_to_ids(pieces)
    return list(dict.fromkeys(ids))


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

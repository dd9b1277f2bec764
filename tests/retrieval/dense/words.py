"""An encoder without weights: each word has a place of its own, so that texts are alike by the words they share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnothi.retrieval.dense.embed import EmbedReport, embed
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage

DIMENSION = 256


def questions(texts: Sequence[str]) -> NDArray[np.float32]:
    found = np.zeros((len(texts), DIMENSION), np.float32)
    for row, text in zip(found, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b(word.encode("utf-8", "replace")).digest()
            row[int.from_bytes(digest[:2], "big") % DIMENSION] += 1.0
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6), np.float32)


def passages(given: Sequence[Passage]) -> NDArray[np.float32]:
    return questions([f"{passage.title} {passage.text}" for passage in given])


class Counted:
    """``passages`` that keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, given: Sequence[Passage]) -> NDArray[np.float32]:
        self.seen += [passage.id for passage in given]
        return passages(given)


def put(path: Path, given: Sequence[Passage], gone: Sequence[str] = ()) -> Path:
    with IndexWriter(path) as writer:
        for passage in given:
            writer.put(passage)
        for key in gone:
            writer.delete(key)
        writer.commit()
    return path


def embedded(path: Path, given: Sequence[Passage], gone: Sequence[str] = ()) -> EmbedReport:
    return embed(put(path, given, gone), Encoding("words"), encode=passages)

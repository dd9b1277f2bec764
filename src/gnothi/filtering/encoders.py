"""How like a pair of question and passage is to stored ones: by their words, or by a sentence encoder.

KEQA (section 3.4) searches its utility reference with BERT; any sentence-transformers model takes that place here, and words
(TF-IDF) where there is none.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gnothi.concurrency import Batcher, in_batches
from gnothi.retrieval.dense.encoders import EXPECTED, Encoder, Vectors, load_sentence_model, named_encoder, stored_name
from gnothi.retrieval.wrappers import titled_text
from gnothi.types import Passage

LEXICAL = "lexical"
"""The encoder that is none: similarity of words."""
FIRST = "cls:"
"""Before the name of a BERT whose raw [CLS] states are compared by their inner products, as KEQA's code does."""
POOLED = "pooler:"
"""Before the name of a BERT whose pooler's outputs are compared by their cosines, as SKR's code does."""
_TOKENS, _TOGETHER = 512, 32

Pair = tuple[str, Passage]


def bare(name: str) -> str:
    """The model of an encoder's name, without what stands before it."""
    return name.removeprefix(FIRST).removeprefix(POOLED)


class Similarity(Protocol):
    async def to_stored(self, question: str, passage: Passage) -> Vectors:
        """One number in [-1, 1] per stored pair, in their order; higher is more alike."""
        ...

    async def aclose(self) -> None: ...


class Lexical:
    """The mean of two cosines of TF-IDF vectors: question with question, passage (title and text) with passage.

    Term frequency counts as 1 + ln tf, a word's weight is ln((N + 1) / (df + 1)) + 1 over the N stored pairs. Words that no
    stored pair has count in the length of the asked one alone.
    """

    def __init__(self, stored: Sequence[Pair]) -> None:
        self._questions = _Words([question for question, _ in stored])
        self._passages = _Words([titled_text(passage) for _, passage in stored])

    async def to_stored(self, question: str, passage: Passage) -> Vectors:
        return (self._questions.cosines(question) + self._passages.cosines(titled_text(passage))) / np.float32(2)

    async def aclose(self) -> None:
        return None


class _Words:
    def __init__(self, texts: Sequence[str]) -> None:
        from scipy.sparse import csr_array

        counts = [_count(text) for text in texts]
        frequency = Counter(word for count in counts for word in count)
        self._columns = {word: column for column, word in enumerate(frequency)}
        self._weights = {word: math.log((len(texts) + 1) / (df + 1)) + 1 for word, df in frequency.items()}
        self._unseen = math.log(len(texts) + 1) + 1
        starts, columns = [0], list[int]()
        values: list[float] = []
        for count in counts:
            vector = self._vector(count)
            columns += [self._columns[word] for word in vector]
            values += vector.values()
            starts.append(len(columns))
        shape = (len(texts), len(self._columns))
        self._matrix: Any = csr_array((np.array(values, np.float32), np.array(columns), np.array(starts)), shape=shape)

    def cosines(self, text: str) -> Vectors:
        vector = np.zeros(len(self._columns), np.float32)
        for word, value in self._vector(_count(text)).items():
            if word in self._columns:
                vector[self._columns[word]] = value
        return np.asarray(self._matrix @ vector, np.float32)

    def _vector(self, count: Counter[str]) -> dict[str, float]:
        """Of length 1, by word."""
        raw = {word: (1 + math.log(times)) * self._weights.get(word, self._unseen) for word, times in count.items()}
        length = math.sqrt(math.fsum(value * value for value in raw.values()))
        return {word: value / length for word, value in raw.items()}


def _count(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


class SentenceEncoder:
    """A sentence-transformers model by folder or hub id, ``cls:`` or ``pooler:`` and such a name (``FIRST``, ``POOLED``), or an
    encoder behind an API; a pair is read as one text, question first, cut at its length limit.

    Raises MissingDependency without the library, ModelUnavailable for a model that cannot be read.
    """

    def __init__(self, name: str) -> None:
        self.raw = name.startswith(FIRST)
        own = bare(name)
        self.name = name.removesuffix(own) + stored_name(own)
        self._named: Encoder | None = _FirstToken(own, not self.raw) if own != name else named_encoder(name)
        self._model: Any = self._named or load_sentence_model(name, f"{LEXICAL!r} (no model), {EXPECTED}")

    def encode(self, pairs: Sequence[Pair]) -> Vectors:
        """Shape (pairs, dimension), float32, rows of length 1 but for ``FIRST``."""
        if not pairs:
            return np.zeros((0, 0), np.float32)
        if self.raw:
            texts = [f"Question: {question}\n\nPassage: {passage.text}" for question, passage in pairs]
        else:
            texts = [f"{question}\n{titled_text(passage)}" for question, passage in pairs]
        if self._named is not None:
            return self._named(texts, "document", None, not self.raw)
        vectors = self._model.encode(texts, convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32).reshape(len(pairs), -1)


class _FirstToken:
    """The last layer's state of a text's first token, or what the model's pooler makes of it."""

    def __init__(self, name: str, pooled: bool) -> None:
        model = load_sentence_model(name, f"{POOLED if pooled else FIRST}NAME of a BERT by folder or hub id.")
        self._tokenizer, self._model, self._pooled = model.tokenizer, model[0].auto_model, pooled

    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> Vectors:  # noqa: ARG002
        import torch

        parts = []
        for start in range(0, len(texts), _TOGETHER):
            part = list(texts[start : start + _TOGETHER])
            tokens = self._tokenizer(part, padding=True, truncation=True, max_length=_TOKENS, return_tensors="pt")
            with torch.no_grad():
                states = self._model(**tokens.to(self._model.device))
            vectors = states.pooler_output if self._pooled else states.last_hidden_state[:, 0]
            parts.append(vectors.float().cpu().numpy())
        rows = np.concatenate(parts)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows


class Dense:
    """Inner products with stored vectors (cosines where rows have length 1), one row per stored pair; what is asked at the same
    time is encoded together."""

    def __init__(self, encoder: SentenceEncoder, vectors: Vectors) -> None:
        self._vectors = vectors
        self._batcher: Batcher[Pair, Vectors] = Batcher(in_batches(lambda pairs: list(encoder.encode(pairs))), "encoder")

    async def to_stored(self, question: str, passage: Passage) -> Vectors:
        vector = await self._batcher.submit((question, passage))
        return await asyncio.to_thread(np.dot, self._vectors, vector)

    async def aclose(self) -> None:
        await self._batcher.aclose()

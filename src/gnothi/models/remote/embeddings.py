"""Encoders behind an API: ``openai:NAME`` by ``/v1/embeddings``, ``tei:ADDRESS`` by Text Embeddings Inference's ``/embed``."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import Loop
from gnothi.models.cache import key_of, open_store
from gnothi.models.remote.client import Client
from gnothi.models.remote.encoder_servers import BesideSettings, Portions, TextEmbeddingsSettings, connected, in_order
from gnothi.models.remote.replies import InvalidReply, OtherShape
from gnothi.models.store import Store
from gnothi.schemes import Scheme

Vectors = NDArray[np.float32]
ITEMS, BYTES = 256, 200_000
"""Of a request. OpenAI takes 2,048 texts and 300,000 tokens, of which a text has no more than bytes."""
TEI_ITEMS = 32
"""What Text Embeddings Inference takes unless its server says more."""


class RemoteEncoder:
    """Texts as vectors. Called from any thread; asks in a loop of its own. Vectors of queries are kept in the cache."""

    def __init__(self, scheme: str, argument: str) -> None:
        """Raises as ``connected``."""
        tei = scheme == "tei"
        self._model, client = connected(
            "encoder", scheme, argument, TextEmbeddingsSettings if tei else BesideSettings, named=not tei
        )
        self._client = client
        self._request = self._embed if tei else self._embeddings
        self._portions = Portions(TEI_ITEMS if tei else ITEMS, BYTES)
        self._identity = {"kind": f"{scheme}: encoder", "model": self._model, "url": client.url}
        self._store = open_store(BesideSettings(), by_default=True)
        self._lock, self._loop = threading.Lock(), Loop()
        self._dimension: int | None = None
        weakref.finalize(self, _end, self._loop, client, self._store)

    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> Vectors:
        """``prompt`` is put before each text. ``unit``: of length 1. Raises ModelUnavailable, Refused, BudgetSpent."""
        joined = (text if isinstance(text, str) else ": ".join(filter(None, text)) for text in texts)
        full = [f"{prompt or ''}{text}" or " " for text in joined]  # servers refuse a text of no letter
        rows = self._cached(full) if role == "query" else self._loop.run(self._encoded(full))
        vectors = np.asarray(rows, np.float64).reshape(len(full), -1 if full else self._dimension or 0)
        if unit:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.where(lengths > 0, lengths, 1)
        return vectors.astype(np.float32)

    def _cached(self, texts: Sequence[str]) -> list[Vectors]:
        """What is in the cache, and what is asked for and kept there."""
        keys = {text: key_of(self._identity, {"text": text}) for text in texts}
        with self._lock:
            values = {text: self._store and self._store.get(key) for text, key in keys.items()}
        vectors = {text: np.frombuffer(value, np.float32) for text, value in values.items() if value and not len(value) % 4}
        missing = [text for text in keys if text not in vectors]
        if missing:
            vectors |= dict(zip(missing, self._loop.run(self._encoded(missing)), strict=True))
        with self._lock:
            for text in missing if self._store else ():
                self._store.put(keys[text], vectors[text].tobytes())  # type: ignore[union-attr]
        return [vectors[text] for text in texts]

    async def _encoded(self, texts: Sequence[str]) -> list[Vectors]:
        return await self._portions.ask(texts, self._request)

    async def _embeddings(self, texts: Sequence[str]) -> list[Vectors]:
        body = {"model": self._model, "input": list(texts)}
        return await self._client.ask("/embeddings", body, partial(self._read, _openai, len(texts)))

    async def _embed(self, texts: Sequence[str]) -> list[Vectors]:
        body = {"inputs": list(texts), "truncate": True}
        return await self._client.ask("/embed", body, partial(self._read, _tei, len(texts)))

    def _read(self, rows: Callable[[object, int], list[Any]], many: int, data: object) -> list[Vectors]:
        try:
            vectors = np.asarray(rows(data, many), np.float32)
        except (TypeError, ValueError):
            raise InvalidReply("expected one vector of numbers for each text, all of one length") from None
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise InvalidReply("expected one vector of numbers for each text, all of one length")
        if self._dimension not in (None, vectors.shape[1]):
            raise InvalidReply(f"got vectors of {vectors.shape[1]} numbers where there were {self._dimension} before")
        self._dimension = vectors.shape[1]
        return list(vectors)


def _openai(data: object, many: int) -> list[Any]:
    if not isinstance(data, Mapping) or "data" not in data:
        raise OtherShape("expected data with embeddings")
    return in_order(data["data"], many, lambda one: one.get("embedding"))


def _tei(data: object, many: int) -> list[Any]:
    if not isinstance(data, list):
        raise OtherShape("expected a list of vectors")
    if len(data) != many:
        raise InvalidReply(f"vectors: got {len(data)}, expected {many}, one for each text")
    return data


def _end(loop: Loop, client: Client, store: Store | None) -> None:
    loop.run(client.aclose())
    loop.stop()
    if store is not None:
        store.close()


OPENAI = Scheme(
    open=partial(RemoteEncoder, "openai"), summary="an encoder behind an API, by /v1/embeddings: NAME or NAME@ADDRESS"
)
TEI = Scheme(open=partial(RemoteEncoder, "tei"), summary="Text Embeddings Inference at an address")

"""Re-rankers behind an API: Cohere's and Jina's shape, which vLLM, llama.cpp and others have, too, and that of Text Embeddings
Inference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gnothi.models.cache import key_of, open_store
from gnothi.models.remote.encoder_servers import (
    BesideSettings,
    CohereSettings,
    JinaSettings,
    Portions,
    RerankSettings,
    TextEmbeddingsSettings,
    connected,
    in_order,
    number,
)
from gnothi.models.remote.replies import OtherShape
from gnothi.schemes import Scheme

ITEMS, BYTES = 1000, 400_000
TEI_ITEMS = 32
_SETTINGS: Mapping[str, type[BesideSettings]] = {
    "cohere": CohereSettings,
    "jina": JinaSettings,
    "rerank": RerankSettings,
    "tei": TextEmbeddingsSettings,
}


class RemoteReranker:
    """A Reranker; scores are the server's, and kept in the cache."""

    def __init__(self, scheme: str, argument: str) -> None:
        """Raises as ``connected``."""
        self._tei = scheme == "tei"
        self._model, self._client = connected("re-ranker", scheme, argument, _SETTINGS[scheme], named=not self._tei)
        self._name = f"{scheme}:{argument}"
        self._portions = Portions(TEI_ITEMS if self._tei else ITEMS, BYTES)
        self._identity = {"kind": f"{scheme}: re-ranker", "model": self._model, "url": self._client.url}
        self._store = open_store(BesideSettings(), by_default=True)
        self._disk = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Raises ModelUnavailable, Refused, BudgetSpent."""
        if not texts:
            return ()
        key = key_of(self._identity, {"query": query, "texts": list(texts)})
        if (cached := await self._get(key)) is not None and len(cached) == len(texts):
            return cached
        scores = tuple(await self._portions.ask([text or " " for text in texts], partial(self._ask, query or " ")))
        if self._store is not None:
            async with self._disk:
                await asyncio.to_thread(self._store.put, key, json.dumps(scores).encode())
        return scores

    async def aclose(self) -> None:
        await self._client.aclose()
        if self._store is not None:
            self._store.close()

    async def _get(self, key: bytes) -> tuple[float, ...] | None:
        if self._store is None:
            return None
        async with self._disk:
            value = await asyncio.to_thread(self._store.get, key)
        try:
            return None if value is None else tuple(map(number, json.loads(value)))
        except (ValueError, TypeError):  # damaged: it is asked for again, and replaced
            return None

    async def _ask(self, query: str, texts: Sequence[str]) -> list[float]:
        read = partial(_scores, len(texts))
        if self._tei:
            return await self._client.ask("/rerank", {"query": query, "texts": list(texts), "truncate": True}, read)
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        return await self._client.ask("/rerank", body, read)


def _scores(many: int, data: object) -> list[float]:
    """``index`` with ``score`` or ``relevance_score``, in a list or under ``results`` (``data`` with some)."""
    results = data.get("results", data.get("data")) if isinstance(data, Mapping) else data
    if not isinstance(results, list):
        raise OtherShape("expected results with index and relevance_score")
    return in_order(results, many, lambda one: number(one.get("relevance_score", one.get("score"))))


def _scheme(name: str, summary: str) -> Scheme[Any]:
    return Scheme(open=partial(RemoteReranker, name), summary=summary)


COHERE = _scheme("cohere", "a re-ranker of Cohere's, by its name (key: COHERE_API_KEY)")
JINA = _scheme("jina", "a re-ranker of Jina's, by its name (key: JINA_API_KEY)")
RERANK = _scheme("rerank", "a re-ranker behind /rerank, NAME@ADDRESS: vLLM, llama.cpp and others")
TEI = _scheme("tei", "Text Embeddings Inference at an address")

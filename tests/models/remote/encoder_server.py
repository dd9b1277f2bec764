"""Encoders and re-rankers as servers offer them, with habits of their own; each text has one vector and one score."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tests.models.openai_api import BadRequest
from tests.models.openai_server import Server

DIMENSION = 6


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """By the words of a text, so that like texts are near."""
    found = [0.01] * dimension
    for word in re.findall(r"\w+", text.lower()):
        found[hashlib.blake2b(word.encode()).digest()[0] % dimension] += 1.0
    return found


def score(query: str, text: str) -> float:
    """The share of the query's words that the text has."""
    words = set(query.lower().split())
    return len(words & set(text.lower().split())) / max(1, len(words))


@dataclass
class BesideApi:
    """``odd`` says for the number of a request what its results are like: reversed, fewer, nan, null, other (dimension), twice,
    empty, text."""

    most: int = 10_000
    odd: Callable[[int], str | None] = lambda _: None
    usage: bool = True
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def answer(self, path: str, body: dict[str, Any]) -> Any:
        self.asked.append((path, body))
        odd = self.odd(len(self.asked))
        name = path.rpartition("/")[2]
        texts: Sequence[str] = body.get("input") or body.get("inputs") or body.get("documents") or body.get("texts") or ()
        if len(texts) > self.most:
            raise BadRequest(f"batch size {len(texts)} > maximum allowed batch size {self.most}", status=422)
        if any("forbidden" in text for text in texts):
            raise BadRequest("this word is not allowed")
        tei = "inputs" in body or "texts" in body
        if name in ("embeddings", "embed"):
            values: list[Any] = [vector(text, DIMENSION + (odd == "other")) for text in texts]
            if odd in ("nan", "null", "text"):
                values[-1][0] = {"nan": math.nan, "null": None, "text": "x"}[odd]
            results = values if tei else [{"index": n, "embedding": one, "object": "embedding"} for n, one in enumerate(values)]
        elif name == "rerank":
            called = "score" if tei else "relevance_score"
            results = [{"index": n, called: score(body["query"], text)} for n, text in enumerate(texts)]
            results.sort(key=lambda one: -one[called])  # as they all do
            if odd in ("nan", "null", "text"):
                results[-1][called] = {"nan": math.nan, "null": None, "text": "x"}[odd]
        else:
            raise BadRequest("no such path", status=404)
        if odd == "reversed" and not (tei and name == "embed"):
            results.reverse()
        if odd == "fewer":
            results = results[:-1]
        if odd == "twice":
            results = [*results[:-1], results[0]] if len(results) > 1 else results * 2
        if odd == "empty":
            results = []
        if tei:
            return results
        tokens = sum(len(text.split()) for text in texts)
        found: dict[str, Any] = {"data" if name == "embeddings" else "results": results, "model": body["model"]}
        return found | ({"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if self.usage else {})


def beside(api: BesideApi, **more: Any) -> Server:
    """A server around it, which takes what answers as ``Api`` does."""
    return Server(cast("Any", api), **more)

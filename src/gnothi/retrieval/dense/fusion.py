"""One ranking from several, by ranks or by scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.protocols import Count, Retriever
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, counter, ranked
from gnothi.types import ScoredPassage

_K = 60  # Cormack, Clarke and Buettcher (2009), section 2
_DECIMALS = 9  # sums in another order differ in the last bits; rounding makes them tie
DEPTH = 100

Found = Sequence[ScoredPassage]


@dataclass(frozen=True, slots=True)
class Fusion:
    """How a ranking by words and one by vectors become one.

    ``scores``: the sum of scores, in each ranking moved to 0 for the last and 1 for the first of those looked at; better than
    ranks on what we measured (docs/results/retrieval.md). ``ranks``: reciprocal rank fusion, the sum of 1 / (60 + rank). In
    both, ``weight`` is the share of the ranking by vectors.
    """

    by: Literal["ranks", "scores"] = "scores"
    weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InvalidSetting(f"weight of the ranking by vectors: got {self.weight}, expected a number from 0 to 1.")

    def fuse(self, by_words: Found, by_vectors: Found, k: int) -> tuple[ScoredPassage, ...]:
        """The k best of both, each best first; a passage that one lacks has 0 from it."""
        sums: defaultdict[str, float] = defaultdict(float)
        for found, weight in ((by_words, 1 - self.weight), (by_vectors, self.weight)):
            for scored, part in zip(found, self._parts(found), strict=True):
                sums[scored.passage.id] += weight * part
        passages = {scored.passage.id: scored.passage for scored in (*by_vectors, *by_words)}
        return ranked((ScoredPassage(passage, round(sums[key], _DECIMALS)) for key, passage in passages.items()), k)

    def _parts(self, found: Found) -> list[float]:
        if self.by == "ranks":
            return [1 / (_K + rank) for rank in _ranks(found)]
        scores = [one.score for one in found]
        low, range_ = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
        return [(score - low) / range_ if range_ else 1.0 for score in scores]


class Hybrid:
    """Of two retrievers over the same passages, each asked for its first hundred (or more, where more are wanted), one
    ranking."""

    def __init__(self, by_words: Retriever, by_vectors: Retriever, fusion: Fusion, name: str) -> None:
        self._by_words, self._by_vectors, self._fusion, self._name = by_words, by_vectors, fusion, name

    @property
    def name(self) -> str:
        return self._name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        depth = max(k, DEPTH)
        by_words, by_vectors = await gather(self._by_words.search(query, depth), self._by_vectors.search(query, depth))
        return self._fusion.fuse(by_words, by_vectors, k)

    def filtered(self, filters: Filters) -> Retriever:
        return Hybrid(filtered(self._by_words, filters), filtered(self._by_vectors, filters), self._fusion, self._name)

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._by_words, filters)

    async def keys(self) -> Sequence[str] | None:
        """Of the metadata of all passages; None where nobody tells."""
        asked = getattr(self._by_words, "keys", None)
        return None if asked is None else await asked()

    async def aclose(self) -> None:
        await gather(self._by_words.aclose(), self._by_vectors.aclose())


def _ranks(found: Found) -> list[int]:
    """From 1; equal scores share a rank."""
    ranks: list[int] = []
    for place, one in enumerate(found):
        ranks.append(ranks[-1] if place and one.score == found[place - 1].score else place + 1)
    return ranks

"""One ranking of two, by scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.protocols import Count, Retriever
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, counter, ranked
from gnothi.types import ScoredPassage

_DECIMALS = 9  # sums in another order differ in the last bits; rounding makes them tie
DEPTH = 100
HALF = 0.5

Results = Sequence[ScoredPassage]


def fuse(by_words: Results, by_vectors: Results, k: int, dense_weight: float = HALF) -> tuple[ScoredPassage, ...]:
    """The k best of both, each best first, by the sum of their scores, in each ranking moved to 0 for the last and 1 for the
    first of those looked at; a passage that one lacks has 0 from it."""
    sums: defaultdict[str, float] = defaultdict(float)
    for results, weight in ((by_words, 1 - dense_weight), (by_vectors, dense_weight)):
        for scored, part in zip(results, _moved(results), strict=True):
            sums[scored.passage.id] += weight * part
    passages = {scored.passage.id: scored.passage for scored in (*by_vectors, *by_words)}
    return ranked((ScoredPassage(passage, round(sums[key], _DECIMALS)) for key, passage in passages.items()), k)


def _moved(results: Results) -> list[float]:
    scores = [one.score for one in results]
    low, range_ = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    return [(score - low) / range_ if range_ else 1.0 for score in scores]


class Hybrid:
    """Of two retrievers over the same passages, each asked for its first hundred (or more, where more are wanted), one
    ranking. ``dense_weight``: the share of the second, by vectors. Raises InvalidSetting for one outside of 0 to 1."""

    def __init__(self, by_words: Retriever, by_vectors: Retriever, name: str, dense_weight: float = HALF) -> None:
        if not 0 <= dense_weight <= 1:
            raise InvalidSetting(f"setting 'dense_weight': got {dense_weight}, expected a share from 0 to 1.")
        self._by_words, self._by_vectors, self._name, self._dense_weight = by_words, by_vectors, name, dense_weight

    @property
    def name(self) -> str:
        return self._name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        depth = max(k, DEPTH)
        by_words, by_vectors = await gather(self._by_words.search(query, depth), self._by_vectors.search(query, depth))
        return fuse(by_words, by_vectors, k, self._dense_weight)

    def filtered(self, filters: Filters) -> Retriever:
        by_words, by_vectors = filtered(self._by_words, filters), filtered(self._by_vectors, filters)
        return Hybrid(by_words, by_vectors, self._name, self._dense_weight)

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._by_words, filters)

    async def keys(self) -> Sequence[str] | None:
        """Of the metadata of all passages; None where they are unknown."""
        list_keys = getattr(self._by_words, "keys", None)
        return None if list_keys is None else await list_keys()

    async def aclose(self) -> None:
        await gather(self._by_words.aclose(), self._by_vectors.aclose())

"""What every retriever promises about its results: at most k, best first, ties broken by passage id. And which ones can
count how often phrases occur among the passages of an index, and occur together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from gnothi.errors import InvalidSetting
from gnothi.protocols import Count
from gnothi.retrieval.filters import Filters
from gnothi.types import ScoredPassage


def ranked(results: Iterable[ScoredPassage], k: int) -> tuple[ScoredPassage, ...]:
    """The k best in order of falling score, equal scores in order of passage id."""
    return tuple(sorted(results, key=lambda result: (-result.score, result.passage.id))[:k])


def check_k(k: int) -> None:
    """Raise InvalidSetting for a negative number of results; 0 is a valid wish for none."""
    if k < 0:
        raise InvalidSetting(f"the number of passages to retrieve: got {k}, expected 0 or more. Pass a larger k.")


@runtime_checkable
class Countable(Protocol):
    """A retriever that counts; wrappers hand it on to what they wrap."""

    def counter(self, filters: Filters = ()) -> Count:
        """Of the passages that pass all filters. Raises InvalidSetting where what is wrapped cannot count."""
        ...


def counter(retriever: Any, filters: Filters = ()) -> Count:
    """Raises InvalidSetting where the retriever cannot count."""
    if not isinstance(retriever, Countable):
        raise InvalidSetting(
            f"the index {retriever.name!r} does not count how often names occur. A folder made by `gnothi index build` does "
            "(also as dense:, hybrid: and shards:), and so does an object of your own with a method counter(filters)."
        )
    return retriever.counter(filters)

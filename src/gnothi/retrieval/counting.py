"""How often phrases occur among the passages of an index, and occur together: who can count, and who cannot."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from gnothi.errors import InvalidSetting
from gnothi.protocols import Count
from gnothi.retrieval.filters import Filters


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

"""Searching among the passages alone that filters let through: who can, who cannot, and the notice where nothing is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gnothi import events
from gnothi.errors import InvalidSetting
from gnothi.protocols import Count, Retriever
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import counter
from gnothi.types import ScoredPassage

_SHOWN = 20


@runtime_checkable
class Filterable(Protocol):
    """A retriever that can be narrowed; wrappers hand it on to what they wrap."""

    def filtered(self, filters: Filters) -> Retriever:
        """This retriever among the passages that pass all of them: k of them where k match. It is not closed by closing that
        one. Raises InvalidSetting where what is wrapped cannot filter."""
        ...


class Searched(Protocol):
    """What ``Narrowed`` asks."""

    @property
    def name(self) -> str: ...

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]: ...

    async def keys(self) -> Sequence[str] | None:
        """Of the metadata of all passages; None where nobody knows."""
        ...


class Narrows:
    """What makes a retriever with ``search_among`` and ``keys`` a ``Filterable`` one."""

    def filtered(self: Searched, filters: Filters) -> Retriever:
        return Narrowed(self, filters)


class Narrowed:
    """Tells of filters that may be mistaken (``events.UnknownKeys``) where nothing is found."""

    def __init__(self, retriever: Searched, filters: Filters) -> None:
        self._retriever, self._filters = retriever, filters

    @property
    def name(self) -> str:
        return self._retriever.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        passages = await self._retriever.search_among(query, k, self._filters)
        if not passages and k and query.strip() and (unknown := await self.unknown()):
            events.emit(unknown)
        return passages

    async def unknown(self) -> events.UnknownKeys | None:
        """The keys of the filters that no passage has, and stars that stand for themselves; None where there are none."""
        there = await self._retriever.keys()
        known = tuple(sorted(there or ()))
        lacking = tuple(dict.fromkeys(one.key for one in self._filters if there is not None and one.key not in known))
        starred = tuple(str(one) for one in self._filters if any("*" in value[:-1] for value in one.values))
        return events.UnknownKeys(self.name, lacking, known, starred) if lacking or starred else None

    def filtered(self, filters: Filters) -> Retriever:
        return Narrowed(self._retriever, (*self._filters, *filters))

    def counter(self, filters: Filters = ()) -> Count:
        return counter(self._retriever, (*self._filters, *filters))

    async def aclose(self) -> None:
        """The retriever is whoever's opened it."""


def filtered(retriever: Retriever, filters: Filters) -> Retriever:
    """The retriever among passages that pass all filters. Raises InvalidSetting where it cannot filter."""
    if not filters:
        return retriever
    if not isinstance(retriever, Filterable):
        raise InvalidSetting(
            f"filter {str(filters[0])!r:.80}: the index {retriever.name!r} cannot filter by metadata. A folder made by `gnothi "
            "index build` can (also as dense:, hybrid: and shards:), what --to wrote on LanceDB, PostgreSQL, Elasticsearch and "
            "OpenSearch can, and retrievers of LangChain, LlamaIndex and Haystack that take filters; an object of your own "
            "can with a method filtered(filters)."
        )
    return retriever.filtered(filters)


async def check_keys(retriever: Retriever, filters: Filters) -> None:
    """Raises InvalidSetting for a key that no passage has, where the retriever can list its keys."""
    list_keys = getattr(retriever, "keys", None)
    known = await list_keys() if list_keys is not None and filters else None
    if known is not None and (lacking := [one.key for one in filters if one.key not in known]):
        raise InvalidSetting(f"filter: {_unknown(lacking, sorted(known))}.")


def cannot(name: str, lacking: str) -> InvalidSetting:
    """For what only builds of ours give a table."""
    return InvalidSetting(
        f"{name} cannot filter by metadata: it has no {lacking}, which `gnothi index build SOURCE... --to` writes. Build it "
        "with that, or leave the filter out."
    )


def unknown_keys(event: events.UnknownKeys) -> str:
    """For messages."""
    unknown = [_unknown(event.lacking, event.known)] if event.lacking else []
    starred = [f"a * stands for any letters only at the end of a value: got {one!r:.80}" for one in event.starred]
    return "; ".join([*unknown, *starred])


def _unknown(lacking: Sequence[str], known: Sequence[str]) -> str:
    there = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
    return f"no passage has the key {' or '.join(map(repr, lacking))}; " + (
        f"the keys there are: {there}" if known else "passages of this index have no metadata"
    )

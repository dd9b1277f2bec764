"""Several servers asked side by side, and one ranking of what they find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gnothi import events
from gnothi.concurrency import gather
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.filtering import Narrows
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage

_K = 60  # Cormack, Clarke and Buettcher (2009), section 2
Found = Sequence[ScoredPassage]


class Part(Protocol):
    """One server's share of the passages. ``optional``: where it does not answer, the others' passages are the result."""

    @property
    def name(self) -> str: ...

    @property
    def optional(self) -> bool: ...

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        """Of passages that pass the filters. Raises IndexUnavailable when there is no answer in time."""
        ...

    async def keys(self) -> Sequence[str]:
        """Of the metadata of its passages. Raises as ``search``."""
        ...

    async def aclose(self) -> None: ...


class Merged(Narrows):
    """A retriever over passages that lie on several servers. ``comparable``: all score alike, so that the ranking by score is
    that of one server with all passages; else it is by rank, 1 / (60 + rank), equal ranks in order of passage id."""

    def __init__(self, parts: Sequence[Part], name: str, comparable: bool) -> None:
        self._parts, self._name, self._comparable = parts, name, comparable

    @property
    def name(self) -> str:
        return self._name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        return await self.search_among(query, k, ())

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        """Raises IndexUnavailable where a server gives no answer; ``events.Partial`` tells of those that were optional."""
        check_k(k)
        if not query.strip() or k == 0:
            return ()
        outcomes = await gather(*(self._asked(part, query, k, filters) for part in self._parts))
        lacking = tuple(
            (part.name, str(one)) for part, one in zip(self._parts, outcomes, strict=True) if isinstance(one, IndexUnavailable)
        )
        found = {
            part.name: one for part, one in zip(self._parts, outcomes, strict=True) if not isinstance(one, IndexUnavailable)
        }
        if not found:
            raise IndexUnavailable(f"no server of {self._name} answered: {lacking[0][1]}")
        if lacking:
            events.emit(events.Partial(self._name, len(self._parts), lacking))
        return self._one(found, k)

    async def keys(self) -> list[str]:
        found = await gather(*(self._keys(part) for part in self._parts))
        return sorted({key for keys in found for key in keys})

    async def _keys(self, part: Part) -> Sequence[str]:
        try:
            return await part.keys()
        except IndexUnavailable:
            if not part.optional:
                raise
            return ()

    async def aclose(self) -> None:
        await gather(*(part.aclose() for part in self._parts))

    async def _asked(self, part: Part, query: str, k: int, filters: Filters) -> Found | IndexUnavailable:
        try:
            return await part.search(query, k, filters)
        except IndexUnavailable as error:
            if not part.optional:
                raise
            return error

    def _one(self, found: dict[str, Found], k: int) -> tuple[ScoredPassage, ...]:
        best: dict[str, tuple[ScoredPassage, str]] = {}
        for server, passages in found.items():
            for rank, one in enumerate(passages, 1):
                scored = one if self._comparable else ScoredPassage(one.passage, 1 / (_K + rank))
                held, where = best.setdefault(one.passage.id, (scored, server))
                if held.passage != one.passage:
                    raise _ambiguous(one.passage, where, server)
                if held.score < scored.score:
                    best[one.passage.id] = scored, server
        return ranked((scored for scored, _ in best.values()), k)


def _ambiguous(passage: Passage, one: str, other: str) -> InvalidSetting:
    return InvalidSetting(
        f"the passage id {passage.id!r:.60} has one text on {one} and another on {other}: an id names one passage. Give the "
        'ids of each server a beginning of their own in the file that describes the index: prefix = "..." under [[servers]].'
    )

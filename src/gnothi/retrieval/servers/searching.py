"""Searching servers side by side: one ranking of what they find, questions as vectors, and whether those fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

from gnothi import events
from gnothi.concurrency import Batcher, gather, in_batches
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.dense.encoders import EncodeQuestions, Encoding, Vectors
from gnothi.retrieval.dense.fusion import Fusion, Hybrid
from gnothi.retrieval.filtering import Narrows
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage, encodable

# Questions as vectors, and which way an index is searched: what all kinds of servers share.

By = Literal["words", "vectors", "both"]
Distance = Literal["inner", "cosine", "euclidean"]
Encoder = Batcher[str, Vectors]


class Described(Protocol):
    @property
    def by(self) -> By: ...
    @property
    def vectors(self) -> str: ...
    @property
    def encoder(self) -> str: ...
    @property
    def distance(self) -> Distance: ...


T = TypeVar("T", bound=Described)


def check_encoder(one: Described) -> None:
    """Raises InvalidSetting where vectors are searched and nobody says what makes them of questions."""
    if one.by != "words" and not (one.encoder and one.vectors):
        raise InvalidSetting(
            f'by = "{one.by}": got no encoder for questions. Name that of {one.vectors!r}, which holds the vectors: '
            'encoder = "...".'
        )


def one_way(found: Iterable[Described], name: str) -> By:
    """By which all are searched. Raises IndexUnavailable where they differ."""
    ways = {one.by for one in found}
    if len(ways) > 1:
        raise IndexUnavailable(f"{name}: got servers searched by {' and by '.join(sorted(ways))}, expected one way.")
    return ways.pop()


def encoders(found: Iterable[Described]) -> dict[str, Encoder]:
    """By name, each loaded once. Raises ModelUnavailable, or MissingDependency without sentence-transformers."""
    return {name: _batcher(Encoding(name).questions()) for name in {one.encoder for one in found}}


def vectors_alike(found: Sequence[Described]) -> bool:
    """Whether scores of one are on the scale of another's."""
    return len({(one.encoder, one.distance) for one in found}) == 1


def _batcher(encode: EncodeQuestions) -> Encoder:
    return Batcher(in_batches(lambda queries: list(encode(queries))), "encoder")


# Whether vectors are there as asked, made by the weights that their encoder has now.


def check_weights(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where the vectors of the table ``name`` were made by other weights than ``encoder`` has now."""
    made = str(notes.get("encoder", ""))
    now = Encoding(encoder).fingerprint() if made else ""
    if now and made != now:
        raise IndexUnavailable(
            f"the vectors of {name} were made by other weights than {encoder!r} has now (fingerprints {made[:12]} "
            f"and {now[:12]}): they cannot be compared. Put the earlier weights back, or build another table."
        )


def check_vectors(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where ``name`` was built with vectors and no ``encoder`` is given, or the other way round, or
    where its vectors were made by other weights."""
    if bool(notes.get("encoder_name")) != bool(encoder):
        raise IndexUnavailable(
            f"{name} was built {'with' if notes.get('encoder_name') else 'without'} vectors: got "
            f"{'an' if encoder else 'no'} encoder. Build as before, or into another place."
        )
    if encoder:
        check_weights(notes, name, encoder)


# Several servers asked side by side, and one ranking of what they find.

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


# Opening them: by words, by vectors, or by both.


class Server(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def optional(self) -> bool: ...
    async def keys(self) -> Sequence[str]: ...
    async def aclose(self) -> None: ...


S = TypeVar("S", bound=Server)


class ServerPart(Generic[S]):
    """A ``Part`` but for its search."""

    def __init__(self, server: S, encoder: Encoder | None = None) -> None:
        self._server, self._encoder = server, encoder
        self.name, self.optional = server.name, server.optional

    async def keys(self) -> Sequence[str]:
        return await self._server.keys()

    async def vector(self, query: str) -> Vectors:
        """Of one that has an encoder."""
        assert self._encoder is not None
        return await self._encoder.submit(encodable(query))

    async def aclose(self) -> None:
        if self._encoder is not None:
            await self._encoder.aclose()
        await self._server.aclose()


def searcher(
    found: Sequence[T],
    name: str,
    check: Callable[[T], None],
    by_words: Callable[[], Merged],
    by_vectors: Callable[[Mapping[str, Encoder]], Sequence[Part]],
) -> Retriever:
    """The retriever over all that is described in ``found``, after ``check`` of each. Raises IndexUnavailable where they are
    not searched one way."""
    way = one_way(found, name)
    for one in found:
        check(one)
    if way == "words":
        return by_words()
    vectors = Merged(by_vectors(encoders(found)), name, vectors_alike(found))
    return vectors if way == "vectors" else Hybrid(by_words(), vectors, Fusion(), name)


def all_contents(contents: Iterable[str]) -> str:
    """What changes with the content of any; empty where one of them does not tell."""
    found = list(contents)
    return "+".join(found) if all(found) else ""

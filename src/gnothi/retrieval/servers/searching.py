"""What all kinds of servers share: how one is described, questions as vectors, and one ranking of what several find.

An index is described by an address, or by a TOML file with what differs from the usual.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from gnothi import config, events
from gnothi.concurrency import Batcher, gather, in_batches
from gnothi.config import Given
from gnothi.errors import IndexUnavailable, InvalidInput, InvalidSetting
from gnothi.files import TOML_ERRORS, home_expanded
from gnothi.protocols import Retriever
from gnothi.retrieval.dense.encoders import Encoding, Vectors
from gnothi.retrieval.dense.fusion import Hybrid
from gnothi.retrieval.filtering import Narrows
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage, encodable

By = Literal["words", "vectors", "both"]
Distance = Literal["inner", "cosine", "euclidean"]
Encoder = Batcher[str, Vectors]
ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
FILE = ".toml"


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Times in seconds. ``patience``: from a server's first failure on; ``connections``: searches at a time."""

    timeout: float = 30.0
    patience: float = 120.0
    connections: int = 4

    def check_waits(self) -> None:
        """Raises InvalidSetting."""
        for name in ("timeout", "connections"):
            if not getattr(self, name) > 0:
                raise InvalidSetting(f"setting {name!r} of a server: got {getattr(self, name)}, expected more than 0.")
        if not self.patience >= 0:
            raise InvalidSetting(f"setting 'patience' of a server: got {self.patience}, expected 0 or more seconds.")


@dataclass(frozen=True)
class Place:
    """Passages on a server: what their columns or fields are called. ``words`` is the one that is searched; ``vectors`` holds
    vectors that ``encoder`` made, compared by ``distance``. ``prefix`` is put before ids. ``optional``: where the server does
    not answer, the others' passages are the result. ``noun`` and ``named``: for messages, and what must have a name."""

    server: str
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    by: By = "words"
    vectors: str = "gnothi_vector"
    encoder: str = ""
    distance: Distance = "inner"
    prefix: str = ""
    noun: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        """Raises InvalidSetting, also where vectors are searched and there is no encoder for questions."""
        for name in (self.noun, "id", "text"):
            if not getattr(self, name).strip(". "):
                raise InvalidSetting(f"setting {name!r} of the index: got {getattr(self, name)!r}, expected a name.")
        if self.by != "words" and not (self.encoder and self.vectors):
            raise InvalidSetting(
                f'by = "{self.by}": got no encoder for questions. Name that of {self.vectors!r}, which holds the vectors: '
                'encoder = "...".'
            )
        if isinstance(self, Waits):
            self.check_waits()


T = TypeVar("T")
P = TypeVar("P", bound=Place)


def check_address(server: str, expected: str, secret: str) -> None:
    """Raises InvalidSetting for what is not ``expected``, an address of a server, or holds a password, which belongs into
    ``secret``."""
    try:
        parts = urlsplit(server)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known or parts.query or parts.fragment:
        raise InvalidSetting(f"the address of a server: got one that cannot be read. Expected {expected}.")
    if parts.password is not None:
        raise InvalidSetting(
            "the address of an index: got one with a password, which runs would record. Put the password into the environment "
            f"variable {secret}."
        )


def without_user(server: str) -> str:
    """The address for messages and requests, which give the user apart."""
    parts = urlsplit(server)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def by_mark(argument: str) -> dict[str, Any]:
    """ADDRESS or ADDRESS#TABLE as settings ``server`` and ``table``."""
    server, _, table = argument.partition("#")
    return {"server": server} | ({"table": table} if table else {})


def described(kind: type[T], argument: str, scheme: str, address: Callable[[str], Mapping[str, Any]] = by_mark) -> list[T]:
    """One for each server. ``argument`` is an address, which ``address`` makes settings of, or the name of a TOML file: its
    keys are settings of all servers, those under ``[[servers]]`` of one.

    Raises InvalidInput for a file that cannot be read, UnknownName and InvalidSetting for settings."""
    what = f"index {scheme}:{argument}"
    if not argument.strip("/ "):
        raise InvalidSetting(f"<--index {scheme}:...>: got no address, expected {scheme}:ADDRESS or {scheme}:FILE.toml.")
    if not argument.endswith(FILE):
        return [_built(kind, address(argument), what, argument)]
    path = home_expanded(argument)
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}, which describes an index: {error.strerror}. Check its name.") from None
    except TOML_ERRORS as error:
        raise InvalidInput(f"{path}, which describes an index, is not valid TOML: {error}.") from None
    several = read.pop("servers", [{}])
    if not isinstance(several, list) or not several or not all(isinstance(one, dict) for one in several):
        raise InvalidInput(f"{path}: got servers = {several!r:.60}, expected tables under [[servers]].")
    return [_built(kind, {**read, **one}, what, str(path)) for one in several]


def _built(kind: type[T], values: Mapping[str, Any], what: str, source: str) -> T:
    if not values.get("server"):
        raise InvalidSetting(f'{what}: got no server, expected its address, as in server = "..." in the file.')
    return config.build(kind, {key: Given(value, source, 1) for key, value in values.items()}, what)


def check_weights(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where the vectors of the table ``name`` were made by other weights than ``encoder`` has now."""
    stored = str(notes.get("encoder", ""))
    current = Encoding(encoder).fingerprint() if stored else ""
    if current and stored != current:
        raise IndexUnavailable(
            f"the vectors of {name} were made by other weights than {encoder!r} has now (fingerprints {stored[:12]} "
            f"and {current[:12]}): they cannot be compared. Put the earlier weights back, or build another table."
        )


# Searches on several servers side by side, and one ranking of their passages.

_K = 60  # Cormack, Clarke and Buettcher (2009), section 2
Results = Sequence[ScoredPassage]


class Part(Protocol):
    """One server's share of the passages."""

    name: str
    optional: bool

    async def search(self, query: str, k: int, filters: Filters = ()) -> Results:
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
        self._parts, self.name, self._comparable = parts, name, comparable

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        return await self.search_among(query, k, ())

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        """Raises IndexUnavailable where a server gives no answer; ``events.Partial`` tells of those that were optional."""
        check_k(k)
        if not query.strip() or k == 0:
            return ()

        async def answer(part: Part) -> Results | IndexUnavailable:
            try:
                return await part.search(query, k, filters)
            except IndexUnavailable as error:
                if not part.optional:
                    raise
                return error

        outcomes = dict(zip([part.name for part in self._parts], await gather(*map(answer, self._parts)), strict=True))
        lacking = tuple((name, str(one)) for name, one in outcomes.items() if isinstance(one, IndexUnavailable))
        results = {name: one for name, one in outcomes.items() if not isinstance(one, IndexUnavailable)}
        if not results:
            raise IndexUnavailable(f"no server of {self.name} answered: {lacking[0][1]}")
        if lacking:
            events.emit(events.Partial(self.name, len(self._parts), lacking))
        return self._merge(results, k)

    async def keys(self) -> list[str]:
        async def keys(part: Part) -> Sequence[str]:
            try:
                return await part.keys()
            except IndexUnavailable:
                if not part.optional:
                    raise
                return ()

        return sorted({key for names in await gather(*map(keys, self._parts)) for key in names})

    async def aclose(self) -> None:
        await gather(*(part.aclose() for part in self._parts))

    def _merge(self, results: dict[str, Results], k: int) -> tuple[ScoredPassage, ...]:
        best: dict[str, tuple[ScoredPassage, str]] = {}
        for server, passages in results.items():
            for rank, scored in enumerate(passages, 1):
                entry = scored if self._comparable else ScoredPassage(scored.passage, 1 / (_K + rank))
                held, where = best.setdefault(scored.passage.id, (entry, server))
                if held.passage != scored.passage:
                    raise _ambiguous(scored.passage, where, server)
                if held.score < entry.score:
                    best[scored.passage.id] = entry, server
        return ranked((entry for entry, _ in best.values()), k)


def _ambiguous(passage: Passage, first: str, second: str) -> InvalidSetting:
    return InvalidSetting(
        f"the passage id {passage.id!r:.60} has one text on {first} and another on {second}: an id names one passage. Give the "
        'ids of each server a beginning of their own in the file that describes the index: prefix = "..." under [[servers]].'
    )


class Server(Protocol):
    name: str
    optional: bool

    async def keys(self) -> Sequence[str]: ...
    async def aclose(self) -> None: ...


S = TypeVar("S", bound=Server)


class ServerPart(Generic[S]):
    """A ``Part`` but for its search: by vectors where there is an encoder, else by words."""

    def __init__(self, server: S, encoder: Encoder | None) -> None:
        self._server, self._encoder = server, encoder
        self.name, self.optional = server.name, server.optional
        self.keys = server.keys

    async def vector(self, query: str) -> Vectors | None:
        return None if self._encoder is None else await self._encoder.submit(encodable(query))

    async def aclose(self) -> None:
        if self._encoder is not None:
            await self._encoder.aclose()
        await self._server.aclose()


def searcher(
    places: Sequence[P], name: str, check: Callable[[P], None], part: Callable[[P, Encoder | None], Part], alike: bool
) -> Retriever:
    """The retriever over all that is described in ``places``, after ``check`` of each; ``alike``: scores by words are of one
    kind. Raises IndexUnavailable where they are not searched one way, ModelUnavailable, MissingDependency."""
    ways = {place.by for place in places}
    if len(ways) > 1:
        raise IndexUnavailable(f"{name}: got servers searched by {' and by '.join(sorted(ways))}, expected one way.")
    for place in places:
        check(place)
    (way,) = ways
    words = Merged([part(place, None) for place in places], name, alike) if way != "vectors" else None
    if words and way == "words":
        return words
    encoders = {encoder: Encoding(encoder).questions() for encoder in {place.encoder for place in places}}
    batchers = {
        encoder: Batcher(in_batches(lambda queries, encode=encode: list(encode(queries))), "encoder")  # type: ignore[misc]
        for encoder, encode in encoders.items()
    }
    comparable = len({(place.encoder, place.distance) for place in places}) == 1
    vectors = Merged([part(place, batchers[place.encoder]) for place in places], name, comparable)
    return Hybrid(words, vectors, name) if words else vectors


def all_contents(contents: Iterable[str]) -> str:
    """What changes with the content of any; empty where one of them is unknown."""
    known = list(contents)
    return "+".join(known) if all(known) else ""

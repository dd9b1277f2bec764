"""Searching indices by words (BM25), by vectors, or by both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gnothi import events
from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import ranked
from gnothi.retrieval.servers.lucene.client import Client, Refused
from gnothi.retrieval.servers.lucene.index import (
    KINDS,
    MOST,
    OWN_ID,
    TERMS,
    Engine,
    Hits,
    Index,
    indices,
    near,
    read_hits,
    too_many,
)
from gnothi.retrieval.servers.lucene.notes import read_notes
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrieval.servers.searching import Found, Merged, ServerPart, all_contents, check_weights, searcher
from gnothi.retrieval.terms import key_of, key_term
from gnothi.types import encodable

_MORE = 16


class Server:
    """One index as it is asked, by words and by vectors: at most ``connections`` searches at a time. Used in one event loop."""

    def __init__(self, index: Index, engine: Engine) -> None:
        self.index, self.engine = index, engine
        self.name, self.optional = index.name, index.optional
        self._client = Client(index, engine)
        self._patience = Patience(index.patience, index.name)
        self._kept: bool | None = None
        self._room = asyncio.Semaphore(index.connections)

    async def hits(self, params: Mapping[str, str], body: Mapping[str, Any], k: int) -> Found:
        """Of a search for the ``k`` best. Raises IndexUnavailable where there are none in time."""
        hits = await self._patience.persist(lambda: self._try(params, body, k))
        if hits.lacking:
            events.emit(events.Partial(self.index.name, hits.shards, hits.lacking))
        return hits.passages

    async def check(self, filters: Filters) -> None:
        """Raises InvalidSetting where there are filters and the index keeps no metadata."""
        if filters and not await self._filters():
            raise cannot(self.index.name, f"field {TERMS}")

    async def keys(self) -> list[str]:
        """Of the metadata of all passages."""
        if not await self._filters():
            return []
        named = {"terms": {"field": TERMS, "include": f"{key_term('')}.*", "size": MOST}}
        answer = await self._asked("_search", {"size": 0, "aggs": {"keys": named}}, self.index.parameters("keys"))
        return [key_of(str(one["key"])) for one in answer["aggregations"]["keys"]["buckets"]]

    async def _filters(self) -> bool:
        if self._kept is None:
            self._kept = TERMS in (await self._asked("_field_caps", None, {"fields": TERMS})).get("fields", {})
        return self._kept

    async def _asked(self, path: str, body: Mapping[str, Any] | None, params: Mapping[str, str]) -> Mapping[str, Any]:
        verb = "GET" if body is None else "POST"
        return await self._patience.persist(lambda: self._client.ask(verb, self.index.path(path), body, params))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _try(self, params: Mapping[str, str], body: Mapping[str, Any], k: int) -> Hits:
        async with self._room:
            self._patience.check()
            return read_hits(await self._client.ask("POST", self.index.path("_search"), body, params), self.index, k)


class ByWords(ServerPart[Server]):
    """Passages that hold any word of the query."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        await self._server.check(filters)
        params, body = self._server.index.by_words(encodable(query), min(k, MOST), filters)
        return ranked(await self._server.hits(params, body, k), k)


class ByVectors(ServerPart[Server]):
    """Passages whose vectors are near that of the query."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        """A server leaves open which of several with one score come first, so a few more are asked for."""
        await self._server.check(filters)
        index = self._server.index
        wanted = k if k > MOST else min(k + _MORE, MOST)
        params, body = near(index, self._server.engine, await self.vector(query), min(wanted, MOST), filters)
        try:
            found = await self._server.hits(params, body, wanted)
        except Refused as error:
            if error.status != 400:
                raise
            raise Refused(
                f"{error} Questions are read by the encoder {index.encoder!r}: name the one that made the vectors of "
                f"{index.vectors!r}.",
                error.status,
                error.kind,
            ) from None
        if k > MOST and len(found) == MOST:  # nobody counts how many more there are
            raise too_many(k, index)
        return ranked(found, k)


def opened(argument: str, engine: Engine) -> Retriever:
    """Raises IndexUnavailable where a server cannot be reached or lacks the index or a field, unless it is optional."""
    found, name = indices(argument, engine), f"{engine}:{argument}"
    servers = [Server(index, engine) for index in found]
    return searcher(
        found,
        name,
        lambda index: _check(index, engine),
        # Each server knows only how rare words are among its own passages: scores of two are not of one kind.
        lambda: Merged([ByWords(server) for server in servers], name, comparable=len(found) == 1),
        lambda made: [ByVectors(server, made[server.index.encoder]) for server in servers],
    )


def fingerprint(argument: str, engine: Engine) -> str:
    """Of indices that we built; empty where one of them was made by others, or does not answer and need not."""
    contents = []
    for index in indices(argument, engine):
        client = Client(index, engine)
        try:
            contents.append(read_notes(client).get("content", ""))
        except (IndexUnavailable, Passing) as error:
            if not index.optional:
                raise _unreachable(index, error) from None
            contents.append("")
        finally:
            client.close()
    return all_contents(contents)


def _check(index: Index, engine: Engine) -> None:
    """The fields are there, can be searched, and no shard is lost. At once: a mistake shows before the first question."""
    client, notes = Client(index, engine), {}
    try:
        _fields(client, index, engine)
        _health(client, index)
        notes = read_notes(client) if index.by != "words" else {}
    except (IndexUnavailable, Passing) as error:
        if not index.optional:  # each search says that it lacks it
            raise _unreachable(index, error) from None
    finally:
        client.close()
    check_weights(notes, index.name, index.encoder)


def _fields(client: Client, index: Index, engine: Engine) -> None:
    searched = {"words": index.searched, "vectors": [index.vectors], "both": [*index.searched, index.vectors]}[index.by]
    wanted = dict.fromkeys([*index.shown, *searched])
    answer = client.ask_blocking("GET", index.path("_field_caps"), params={"fields": ",".join(wanted)})
    known = answer.get("fields", {})
    lacking = [name for name in wanted if name not in known]
    if lacking:
        raise IndexUnavailable(
            f"{index.name} has no field {', '.join(map(repr, lacking))}. Name its own fields in a file: id, title, text and "
            'words (words = "" searches title and text), or vectors.'
        )
    if index.by != "words" and set(known[index.vectors]) != {KINDS[engine]}:
        raise IndexUnavailable(
            f"{index.name}: the field {index.vectors!r} is of type {', '.join(sorted(known[index.vectors]))}, expected "
            f'{KINDS[engine]}. Name the one that holds the vectors: vectors = "..." in the file that describes the index.'
        )
    if index.id != OWN_ID and not all(one.get("aggregatable") for one in known[index.id].values()):
        raise IndexUnavailable(
            f"{index.name}: the field {index.id!r} cannot be sorted by. Name one of keywords or numbers, as "
            f'{index.id}.keyword, or the server\'s own: id = "_id".'
        )


def _health(client: Client, index: Index) -> None:
    try:
        answer = client.ask_blocking("GET", "/_cluster/health/" + index.path("").strip("/"))
    except Refused:
        return  # not everybody may ask; each search says what it lacks
    if answer.get("status") == "red" and not index.partial:
        raise IndexUnavailable(
            f"{index.name} is red: {answer.get('unassigned_shards', 'some')} of its shards are not there. Repair it, or search "
            "what is there: partial = true in the file that describes it."
        )


def _unreachable(index: Index, error: Exception) -> IndexUnavailable:
    if isinstance(error, IndexUnavailable):
        return error
    return IndexUnavailable(f"{index.name} cannot be reached: {error}. Check its address, and that it runs.")

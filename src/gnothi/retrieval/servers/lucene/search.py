"""Searching indices by words (BM25)."""

from __future__ import annotations

import asyncio

from gnothi import events
from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.results import ranked
from gnothi.retrieval.servers.lucene.answers import read_hits
from gnothi.retrieval.servers.lucene.client import Client, Refused
from gnothi.retrieval.servers.lucene.index import MOST, OWN_ID, Engine, Index, indices
from gnothi.retrieval.servers.lucene.notes import read_notes
from gnothi.retrieval.servers.merged import Found, Merged
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.types import encodable


class ByWords:
    """Passages that hold any word of the query. At most ``connections`` searches at a time. Used in one event loop."""

    def __init__(self, index: Index, engine: Engine) -> None:
        self._index = index
        self.name, self.optional = index.name, index.optional
        self._client = Client(index, engine)
        self._patience = Patience(index.patience, index.name)
        self._room = asyncio.Semaphore(index.connections)

    async def search(self, query: str, k: int) -> Found:
        return await self._patience.persist(lambda: self._try(encodable(query), k))

    async def _try(self, query: str, k: int) -> Found:
        async with self._room:
            self._patience.check()
            params, body = self._index.by_words(query, min(k, MOST))
            hits = read_hits(await self._client.ask("POST", self._index.path("_search"), body, params), self._index, k)
        if hits.lacking:
            events.emit(events.Partial(self.name, hits.shards, hits.lacking))
        return ranked(hits.passages, k)

    async def aclose(self) -> None:
        await self._client.aclose()


def opened(argument: str, engine: Engine) -> Retriever:
    """Raises IndexUnavailable where a server cannot be reached or lacks the index or a field, unless it is optional."""
    found = indices(argument, engine)
    for index in found:
        _check(index, engine)
    # Each server knows only how rare words are among its own passages: scores of two are not of one kind.
    return Merged([ByWords(index, engine) for index in found], f"{engine}:{argument}", comparable=len(found) == 1)


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
    return "+".join(contents) if all(contents) else ""


def _check(index: Index, engine: Engine) -> None:
    """The fields are there, can be searched, and no shard is lost. At once: a mistake shows before the first question."""
    client = Client(index, engine)
    try:
        _fields(client, index)
        _health(client, index)
    except (IndexUnavailable, Passing) as error:
        if not index.optional:  # each search says that it lacks it
            raise _unreachable(index, error) from None
    finally:
        client.close()


def _fields(client: Client, index: Index) -> None:
    wanted = dict.fromkeys([*index.shown, *index.searched])
    answer = client.ask_blocking("GET", index.path("_field_caps"), params={"fields": ",".join(wanted)})
    known = answer.get("fields", {})
    lacking = [name for name in wanted if name not in known]
    if lacking:
        raise IndexUnavailable(
            f"{index.name} has no field {', '.join(map(repr, lacking))}. Name its own fields in a file: id, title, text and "
            'words (words = "" searches title and text).'
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

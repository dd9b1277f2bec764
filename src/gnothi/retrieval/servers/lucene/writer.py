"""Building an index of Elasticsearch or OpenSearch, with what we note of its sources beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.dense.encoders import EncodePassages, Encoding
from gnothi.retrieval.ledger import earlier
from gnothi.retrieval.servers.lucene.client import Client, Refused, Steady
from gnothi.retrieval.servers.lucene.index import (
    METADATA,
    ORIGIN,
    OWN_ID,
    TERMS,
    Engine,
    as_text,
    field,
    field_of,
    indices,
    numbers,
    settings_of,
)
from gnothi.retrieval.servers.lucene.notes import BESIDE, VERSION, LuceneLedger, Notes, digest
from gnothi.retrieval.servers.searching import check_vectors
from gnothi.retrieval.servers.writing import ServerWriter, Standing, foreign, only
from gnothi.retrieval.targets import Target
from gnothi.retrieval.terms import terms
from gnothi.types import Passage

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@contextmanager
def opened(argument: str, engine: Engine) -> Iterator[Target]:
    """Raises IndexUnavailable where the server cannot be reached, or the index is not ours."""
    index = only(indices(argument, engine), f"{engine}:{argument}", "server", "index")
    if not _NAME.fullmatch(index.index) or len(index.index + BESIDE) > 255:
        raise InvalidSetting(
            f"an index that is built: got the name {index.index!r:.60}, expected small letters, digits, dots, - and _, "
            "beginning with a letter or digit, at most 248."
        )
    if not (index.title and index.words) or index.id == OWN_ID:
        raise InvalidSetting("id, title and words of an index that is built: expected names of fields.")
    if index.encoder and (not index.vectors or index.vectors in {index.id, index.title, index.text, index.words}):
        raise InvalidSetting(f"vectors of an index that is built: got {index.vectors!r}, expected a field of its own.")
    encode = Encoding(index.encoder).passages() if index.encoder else None
    client = Client(index, engine)
    try:
        server = Steady(client)
        notes = _prepared(server, engine, encode)
        ledger = LuceneLedger(server, notes)
        yield Target(LuceneWriter(server, ledger, encode), ledger)
    finally:
        client.close()


class LuceneWriter(ServerWriter):
    """Nothing is held back until ``commit``: it makes visible. So before the first passage of an origin the origin is noted,
    and before an origin loses passages that. What a killed build left of one that no source knows is deleted at the end of the
    next build."""

    def __init__(self, server: Steady, ledger: LuceneLedger, encode: EncodePassages | None = None) -> None:
        super().__init__(str(ledger.notes.values.get("content", "")), encode, ledger.notes.values.get("lost", ()))
        self._server, self._ledger, self._index = server, ledger, server.index
        self._begun: set[str] = set()
        self._put_notes(complete=False)
        self.passages = server.count()

    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        self._begun |= {origin for _, origin in written.values()}
        self._put_notes(complete=False)
        self._server.bulk(self._documents(written))

    def delete_origin(self, origin: str) -> None:
        query = {"term": {ORIGIN: origin}}
        self._server.refresh()
        if self._server.count(query):
            self._note("delete origin")
            self._lost.add(origin)
            self._put_notes(complete=False)
            self._server.delete(query)

    def commit(self, complete: bool = True) -> None:
        self._server.refresh()
        self._put_notes(complete)
        self._begun, self._lost = set(), set()  # the ledger is saved before anything else is written
        self.passages, self.pending_bytes = self._server.count(), 0

    def _put_notes(self, complete: bool) -> None:
        begun, lost = sorted({*self._begun, *self._ledger.orphans}), sorted(self._lost)
        self._ledger.notes.put({"content": self._content, "complete": complete, "begun": begun, "lost": lost})

    def _documents(self, written: Mapping[str, tuple[Passage, str]]) -> dict[str, dict[str, Any]]:
        index = self._index
        documents: dict[str, dict[str, Any]] = {
            digest(key): {index.id: one.id, index.title: one.title, index.text: one.text, ORIGIN: origin}
            | {METADATA: one.known.packed, TERMS: terms(one.metadata)}
            for key, (one, origin) in written.items()
        }
        if self._encode:
            vectors = self._encode([passage for passage, _ in written.values()])
            for document, vector in zip(documents.values(), vectors, strict=True):
                document[index.vectors] = numbers(vector)
        return documents

    def _standing(self, ids: Sequence[str]) -> Standing:
        index = self._index
        found = self._server.documents(sorted({digest(key) for key in ids}), without=index.vectors if self._encode else "")
        return {
            key: (
                Passage(key, as_text(field(one, index.text)), as_text(field(one, index.title)), unpacked(one.get(METADATA))),
                as_text(one.get(ORIGIN)),
            )
            for key in ids
            if (one := found.get(digest(key))) is not None
        }


def _prepared(server: Steady, engine: Engine, encode: EncodePassages | None) -> Notes:
    """Make what is not there yet; nothing of others is changed."""
    index, notes = server.index, Notes(server)
    path = index.path("").rstrip("/")
    try:
        server.send("GET", path)
    except Refused as error:
        if error.status != 404:
            raise
    else:
        if not notes.there:
            raise foreign(index.name, "index")
        if notes.values.get("version") != VERSION:
            raise earlier(index.name, f"gnothi index build SOURCE... --to {engine}:...")
        check_vectors(notes.values, index.name, index.encoder)
        return notes
    made = {"encoder_name": index.encoder, "encoder": Encoding(index.encoder).fingerprint() if encode else ""}
    notes.create()  # notes of an index that is gone tell nothing
    notes.put({"content": "", "complete": False, "begun": [], "lost": [], "version": VERSION, **made})
    body = {"type": "text", "index": False, "copy_to": index.words}
    mapping: dict[str, Any] = {
        index.id: {"type": "keyword"},
        index.title: body,
        index.text: body,
        index.words: {"type": "text", "analyzer": "english"},
        ORIGIN: {"type": "keyword"},
        TERMS: {"type": "keyword"},
    }
    settings: dict[str, Any] = {}
    if encode:
        mapping[index.vectors] = field_of(index, engine, encode([Passage("", "size")]).shape[1])
        settings = settings_of(engine)
    try:
        server.send("PUT", path, {**settings, "mappings": {"dynamic": False, "properties": mapping}})
    except Refused as error:
        if error.kind != "resource_already_exists_exception":  # by a try whose answer was lost
            raise
    return notes

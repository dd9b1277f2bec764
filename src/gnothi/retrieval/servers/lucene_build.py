"""Building an index of Elasticsearch or OpenSearch; what we note of it stands beside it, in an index of its own
(``NAME-gnothi``): content, sources, builder."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting, malformation
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.ledger import Entry, as_row, earlier
from gnothi.retrieval.servers.lucene import (
    BESIDE,
    NOTES,
    OWN_ID,
    Client,
    Engine,
    Refused,
    as_text,
    field,
    field_of,
    indices,
    numbers,
    place_of,
    read_notes,
    settings_of,
)
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrieval.servers.searching import METADATA, ORIGIN, TERMS
from gnothi.retrieval.servers.writing import (
    Encode,
    NotedLedger,
    NotedWriter,
    Standing,
    check_vectors,
    encoded_by,
    foreign,
    only,
    size_of,
)
from gnothi.retrieval.targets import Target
from gnothi.retrieval.terms import terms
from gnothi.retrying import worth_another_try
from gnothi.types import Passage

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_REQUEST_BYTES = 5_000_000
_PAGE = 1000
_PLACE = "place"
_MAPPING = {"dynamic": False, "properties": {_PLACE: {"type": "keyword"}}}
_VERSION = 2
"""Of what is noted, in the notes."""


@contextmanager
def opened(argument: str, engine: Engine) -> Iterator[Target]:
    """Raises IndexUnavailable where the server cannot be reached, or the index is not ours."""
    index = only(indices(argument, engine), f"{engine}:{argument}", "server")
    if not _NAME.fullmatch(index.index) or len(index.index + BESIDE) > 255:
        raise InvalidSetting(
            f"an index that is built: got the name {index.index!r:.60}, expected lower-case letters, digits, dots, - and _, "
            "beginning with a letter or digit, at most 248."
        )
    if not (index.title and index.words) or index.id == OWN_ID:
        raise InvalidSetting(
            f"id, title and words: got {index.id!r}, {index.title!r} and {index.words!r}, expected names of fields "
            f"(not {OWN_ID!r}) in an index that is built."
        )
    if index.encoder and (not index.vectors or index.vectors in {index.id, index.title, index.text, index.words}):
        raise InvalidSetting(
            f"vectors: got {index.vectors!r}, expected the name of a field that has no other use in an index that is built."
        )
    encode, encoder_notes = encoded_by(index)
    server = Steady(Client(index, engine))
    with closing(LuceneLedger(server, _prepared(server, engine, encode, encoder_notes))) as ledger:
        yield Target(LuceneWriter(server, ledger, encode), ledger)


class Steady:
    """Requests of a build, each asked until it is answered in full. Asking twice does no harm: every document has its own
    id."""

    def __init__(self, client: Client) -> None:
        self.client, self.index = client, client.index
        self._patience = Patience(client.index.patience, client.index.name, known=False)

    def ask(self, attempt: Callable[[], T]) -> T:
        """Raises IndexUnavailable when patience is over, or where the server refuses."""

        def read() -> T:
            try:
                return attempt()
            except MALFORMED as error:
                raise Passing(f"an answer that makes no sense ({malformation(error)})") from None

        return self._patience.persist_blocking(read)

    def send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self.ask(lambda: self.client.ask(method, path, body))

    def refresh(self, beside: str = "") -> None:
        """What was written can be searched."""
        self.ask(lambda: _all_shards(self.client.ask("POST", self.index.path("_refresh", beside))))

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        body = {"query": query} if query else None
        return self.ask(lambda: int(_all_shards(self.client.ask("POST", self.index.path("_count"), body))["count"]))

    def every(self, field: str, beside: str) -> Iterator[dict[str, Any]]:
        """All documents that have the field, a keyword that is different in each."""
        self.refresh(beside)
        body: dict[str, Any] = {"query": {"exists": {"field": field}}, "size": _PAGE, "sort": [{field: "asc"}]}

        def page() -> list[dict[str, Any]]:
            return list(_all_shards(self.client.ask("POST", self.index.path("_search", beside), body))["hits"]["hits"])

        while hits := self.ask(page):
            yield from (one["_source"] for one in hits)
            if len(hits) < _PAGE:
                return
            body["search_after"] = hits[-1]["sort"]

    def documents(self, ids: list[str], without: str = "") -> dict[str, dict[str, Any]]:
        """Those of these ids that are there, written a moment ago or long since, by id; each ``without`` that field."""
        params = {"_source_excludes": without} if without else {}

        def attempt() -> dict[str, dict[str, Any]]:
            documents = self.client.ask("POST", self.index.path("_mget"), {"ids": ids}, params)["docs"]
            if [one["_id"] for one in documents] != ids or any("error" in one for one in documents):
                raise Passing(f"the answer has {len(documents)} of {len(ids)} documents, or errors")
            return {one["_id"]: one["_source"] for one in documents if one["found"]}

        return self.ask(attempt) if ids else {}

    def bulk(self, documents: Mapping[str, Mapping[str, Any]], beside: str = "") -> None:
        """Put each, by its id, in requests of a size that servers take; those that the server had no room for again."""
        part: dict[str, str] = {}
        size = 0
        for key, document in documents.items():
            line = json.dumps({"index": {"_id": key}}) + "\n" + json.dumps(document, ensure_ascii=False) + "\n"
            if part and size + len(line.encode()) > _REQUEST_BYTES:
                self.ask(partial(self._put, part, beside))
                part, size = {}, 0
            part[key] = line
            size += len(line.encode())
        if part:
            self.ask(partial(self._put, part, beside))

    def _put(self, waiting: dict[str, str], beside: str) -> None:
        """Takes out of ``waiting`` what the server has."""
        for one in self.client.ask("POST", self.index.path("_bulk", beside), "".join(waiting.values()))["items"]:
            done = one["index"]
            if done["status"] < 300:
                waiting.pop(done["_id"], None)
            elif not worth_another_try(done["status"]):
                raise IndexUnavailable(
                    f"{self.index.name} does not take a passage: {json.dumps(done.get('error'))[:300]}. Correct it, "
                    "or leave it out; what was written stays."
                )
        if waiting:
            raise Passing(f"{len(waiting)} documents were not taken")

    def delete(self, query: Mapping[str, Any], beside: str = "") -> None:
        """All that match. What was written before is looked through, too."""
        self.refresh(beside)
        params = {"refresh": "true", "conflicts": "proceed", "max_docs": "1000"}

        def attempt() -> int:
            answer = self.client.ask("POST", self.index.path("_delete_by_query", beside), {"query": query}, params)
            if answer["failures"] or answer["timed_out"] or answer["version_conflicts"]:
                raise Passing(f"not all could be deleted: {json.dumps(answer['failures'])[:200]}")
            return int(answer["total"])

        while self.ask(attempt):
            pass


def _all_shards(answer: dict[str, Any]) -> dict[str, Any]:
    shards = answer["_shards"]
    if shards.get("failed") or answer.get("timed_out"):
        raise Passing(f"{shards.get('failed')} of {shards['total']} shards gave no answer")
    return answer


def digest(text: str) -> str:
    """A document's own id: a server takes 512 bytes, and not every letter."""
    return blake2b(text.encode(), digest_size=20).hexdigest()


class Notes:
    """Written by one build at a time: a later one takes over, and the one before finds that out at its next note."""

    def __init__(self, server: Steady) -> None:
        self._server, self._builder = server, secrets.token_hex(8)
        stored = server.ask(lambda: read_notes(server.client))
        self._place: tuple[int, int] | tuple[None, None] = place_of(stored) if stored else (None, None)
        self.values: dict[str, Any] = stored.get("_source", {})

    def create(self) -> None:
        """The index beside, empty, whatever was there."""
        path = self._server.index.path("", BESIDE).rstrip("/")
        for method, body, fine in (("DELETE", None, 404), ("PUT", {"mappings": _MAPPING}, 400)):
            try:
                self._server.send(method, path, body)
            except Refused as error:
                if error.status != fine or (method == "PUT" and error.kind != "resource_already_exists_exception"):
                    raise
        self._place, self.values = (None, None), {}

    def put(self, **changes: Any) -> None:
        """Raises IndexUnavailable where another build has begun."""
        number = int(self.values.get("number", 0)) + 1
        self.values = {**self.values, **changes, "number": number, "builder": self._builder}
        self._place = self._server.ask(lambda: self._try(number))

    def _try(self, number: int) -> tuple[int, int]:
        sequence, term = self._place
        place = {"op_type": "create"} if sequence is None else {"if_seq_no": str(sequence), "if_primary_term": str(term)}
        client = self._server.client
        try:
            answer = client.ask("PUT", self._server.index.path(NOTES, BESIDE), self.values, place)
        except Refused as error:
            if error.status != 409:
                raise
            answer = read_notes(client)  # ours, if the answer to an earlier try was lost
            held = answer.get("_source", {})
            if (held.get("builder"), held.get("number")) != (self._builder, number):
                raise IndexUnavailable(
                    f"{self._server.index.name} is being written by another build, which began later: one at a time. Wait "
                    "until it has ended, then run this again."
                ) from None
        return place_of(answer)


class LuceneLedger(NotedLedger):
    """Sources as documents beside the notes."""

    def __init__(self, server: Steady, notes: Notes) -> None:
        self._server = server
        super().__init__((json.loads(one["entry"]) for one in server.every(_PLACE, BESIDE)), notes.values, notes.put)

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        documents = {
            place: {_PLACE: place, "entry": json.dumps(as_row(entry))} for entry in changed for place in [digest(entry.key)]
        }
        self._server.bulk(documents, BESIDE)
        self._server.refresh(BESIDE)
        for start in range(0, len(removed), _PAGE):
            places = [digest(key) for key in removed[start : start + _PAGE]]
            self._server.delete({"terms": {_PLACE: places}}, BESIDE)


class LuceneWriter(NotedWriter):
    """Nothing is held back until ``commit``: it makes visible."""

    def __init__(self, server: Steady, ledger: LuceneLedger, encode: Encode) -> None:
        super().__init__(ledger, encode)
        self._server, self._index = server, server.index
        self._note_state(complete=False)
        self.passages = server.count()

    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        self._begun |= {origin for _, origin in written.values()}
        self._note_state(complete=False)
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
        self._server.bulk(documents)

    def delete_origin(self, origin: str) -> None:
        query = {"term": {ORIGIN: origin}}
        self._server.refresh()
        if self._server.count(query):
            self._note("delete origin")
            self._lost.add(origin)
            self._note_state(complete=False)
            self._server.delete(query)

    def commit(self, complete: bool = True) -> None:
        self._server.refresh()
        self._note_state(complete)
        self._begun, self._lost = set(), set()  # the ledger is saved before anything else is written
        self.passages, self.pending_bytes = self._server.count(), 0

    def _standing(self, ids: Sequence[str]) -> Standing:
        index = self._index
        documents = self._server.documents(sorted({digest(key) for key in ids}), without=index.vectors if self._encode else "")
        return {
            key: (
                Passage(
                    key,
                    as_text(field(document, index.text)),
                    as_text(field(document, index.title)),
                    unpacked(document.get(METADATA)),
                ),
                as_text(document.get(ORIGIN)),
            )
            for key in ids
            if (document := documents.get(digest(key))) is not None
        }


def _prepared(server: Steady, engine: Engine, encode: Encode, encoder_notes: Mapping[str, str]) -> Notes:
    """Make what is not there yet; nothing of others is changed."""
    index, notes = server.index, Notes(server)
    path = index.path("").rstrip("/")
    try:
        server.send("GET", path)
    except Refused as error:
        if error.status != 404:
            raise
    else:
        if not notes.values:
            raise foreign(index.name, index.noun)
        if notes.values.get("version") != _VERSION:
            raise earlier(index.name, f"gnothi index build SOURCE... --to {engine}:...")
        check_vectors(notes.values, index.name, index.encoder)
        return notes
    notes.create()  # notes of an index that is gone tell nothing
    notes.put(content="", complete=False, begun=[], lost=[], version=_VERSION, **encoder_notes)
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
    if size := size_of(encode):
        mapping[index.vectors] = field_of(index, engine, size)
        settings = settings_of(engine)
    try:
        server.send("PUT", path, {**settings, "mappings": {"dynamic": False, "properties": mapping}})
    except Refused as error:
        if error.kind != "resource_already_exists_exception":  # by a try whose answer was lost
            raise
    return notes

"""What we note beside an index that we built, in an index of its own (``NAME-gnothi``): content, sources, builder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.ledger import Entry, Ledger, as_row
from gnothi.retrieval.servers.lucene.client import Client, Refused, Steady
from gnothi.retrieval.servers.patience import Passing

BESIDE = "-gnothi"
_NOTES = "_doc/notes"
_PLACE = "place"
_AT_ONCE = 1000
_MAPPING = {"dynamic": False, "properties": {_PLACE: {"type": "keyword"}}}
VERSION = 2
"""Of what is noted, in the notes."""


def digest(text: str) -> str:
    """A document's own id: a server takes 512 bytes, and not every letter."""
    return blake2b(text.encode(), digest_size=20).hexdigest()


def read_notes(client: Client) -> dict[str, Any]:
    """Nothing for an index of others, or for a pattern. ``content`` changes with the passages."""
    return dict(_read(client).get("_source", {}))


def _read(client: Client) -> dict[str, Any]:
    index = client.index
    if set(index.index) & set("*,<>:"):
        return {}
    try:
        found = client.ask_blocking("GET", index.path(_NOTES, BESIDE))
        if not isinstance(found.get("_source"), dict):
            raise Passing("the answer is not that of a document")
        _place(found)
        return found
    except Refused as error:
        if error.status != 404:
            raise
        return {}


def _place(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Where a document stands among its versions. Raises Passing for an answer that does not tell: taken for one, the next note
    would be taken for another build's."""
    sequence, term = answer.get("_seq_no"), answer.get("_primary_term")
    if not isinstance(sequence, int) or not isinstance(term, int):
        raise Passing("the answer does not tell the document's version")
    return sequence, term


class Notes:
    """Written by one build at a time: a later one takes over, and the one before finds that out at its next note."""

    def __init__(self, server: Steady) -> None:
        self._server, self._builder = server, secrets.token_hex(8)
        found = server.ask(lambda: _read(server.client))
        self._place: tuple[int, int] | tuple[None, None] = _place(found) if found else (None, None)
        self.values: dict[str, Any] = found.get("_source", {})
        self.there = bool(found)

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

    def put(self, changes: Mapping[str, Any]) -> None:
        """Raises IndexUnavailable where another build has begun."""
        number = int(self.values.get("number", 0)) + 1
        self.values = {**self.values, **changes, "number": number, "builder": self._builder}
        self._place = self._server.ask(lambda: self._try(number))

    def _try(self, number: int) -> tuple[int, int]:
        sequence, term = self._place
        place = {"op_type": "create"} if sequence is None else {"if_seq_no": str(sequence), "if_primary_term": str(term)}
        client = self._server.client
        try:
            found = client.ask_blocking("PUT", self._server.index.path(_NOTES, BESIDE), self.values, place)
        except Refused as error:
            if error.status != 409:
                raise
            found = _read(client)  # ours, if the answer to an earlier try was lost
            held = found.get("_source", {})
            if (held.get("builder"), held.get("number")) != (self._builder, number):
                raise IndexUnavailable(
                    f"{self._server.index.name} is being written by another build, which began later: one at a time. Wait "
                    "until it has ended, then run this again."
                ) from None
        return _place(found)


class LuceneLedger(Ledger):
    """Sources as documents beside the notes."""

    def __init__(self, server: Steady, notes: Notes) -> None:
        self._server, self.notes = server, notes
        super().__init__(rows=(json.loads(one["entry"]) for one in server.every(_PLACE, BESIDE)))
        self.recover(notes.values.get("begun", ()), notes.values.get("lost", ()))

    def save(self) -> None:
        super().save()
        if self.notes.values.get("begun") != self.orphans or self.notes.values.get("lost"):
            self.notes.put({"begun": self.orphans, "lost": []})

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        documents = {
            place: {_PLACE: place, "entry": json.dumps(as_row(entry))} for entry in changed for place in [digest(entry.key)]
        }
        self._server.bulk(documents, BESIDE)
        self._server.refresh(BESIDE)
        for start in range(0, len(removed), _AT_ONCE):
            places = [digest(key) for key in removed[start : start + _AT_ONCE]]
            self._server.delete({"terms": {_PLACE: places}}, BESIDE)

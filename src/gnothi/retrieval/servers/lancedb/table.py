"""A table of passages: where it is, and what its columns are called."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.files import home_expanded
from gnothi.retrieval import terms
from gnothi.retrieval.filters import Filter, Filters, Span
from gnothi.retrieval.ledger import Entry, Ledger, as_row, earlier
from gnothi.retrieval.servers.searching import By, Distance, check_encoder
from gnothi.retrieval.servers.settings import described
from gnothi.types import Value

ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
ERRORS = (ValueError, RuntimeError, OSError)
"""What LanceDB raises, whatever went wrong."""


@dataclass(frozen=True, slots=True)
class Table:
    """``server`` is a folder, or the address of an object store as LanceDB takes it; ``endpoint`` and ``region`` say which one
    answers to ``s3://``. Its keys come from the environment alone. ``words`` is the column that is searched;
    empty: that of the text. ``vectors`` is a column of lists of one length. ``prefix`` is put before ids."""

    server: str
    table: str = "passages"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    by: By = "words"
    vectors: str = "gnothi_vector"
    encoder: str = ""
    distance: Distance = "inner"
    prefix: str = ""
    endpoint: str = ""
    region: str = ""

    def __post_init__(self) -> None:
        scheme, mark, rest = self.server.partition("://")
        if mark and "@" in rest.partition("/")[0]:
            raise InvalidSetting(
                "an address with keys: runs note the name of their index. Put them into the environment variables "
                f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; expected an address as {scheme}://BUCKET/FOLDER."
            )
        if not mark and (self.endpoint or self.region):
            raise InvalidSetting(
                f"endpoint and region are those of an object store: got them with the folder {self.server!r}, expected "
                's3://BUCKET/FOLDER as server, or "" for both.'
            )
        for name in ("table", "id", "text"):
            if not getattr(self, name):
                raise InvalidSetting(f"{name} of a table: got an empty text, expected a name.")
        check_encoder(self)

    @property
    def name(self) -> str:
        return f"LanceDB {self.server} table {self.table}"

    @property
    def folder(self) -> Path | None:
        """None for an object store."""
        return None if "://" in self.server else home_expanded(self.server)

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.id, self.text, self.title) if name]

    def connect(self) -> Any:
        """Raises IndexUnavailable, or MissingDependency without lancedb."""
        try:
            import lancedb
        except ImportError as error:
            raise MissingDependency("lancedb", "lancedb", "<--index lancedb:...>") from error
        try:
            return lancedb.connect(str(self.folder or self.server), storage_options=self._store())
        except ERRORS as error:
            raise self.refused(error) from None

    def _store(self) -> dict[str, str] | None:
        """What LanceDB is told of an object store beside what it finds in the environment."""
        if self.folder is not None:
            return None
        given = {"endpoint": self.endpoint, "region": self.region}
        plain = {"allow_http": "true"} if self.endpoint.startswith("http://") else {}
        return {name: value for name, value in given.items() if value} | plain

    def refused(self, error: Exception) -> IndexUnavailable:
        said = _reason(error).rstrip(".")
        for value in filter(None, map(os.environ.get, _SECRETS)):  # a store may repeat what it was given
            said = said.replace(value, "...")
        where = "the disk" if self.folder is not None else "the object store: its endpoint, region and keys"
        return IndexUnavailable(f"{self.name}: LanceDB says: {said}. Check the names in <--index lancedb:...>, and {where}.")


def _reason(error: Exception) -> str:
    """The first line, or of a store's long one the part that says why: what the store answered, or what the network did."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    reason = re.search(r"<Message>(.*?)</Message>", said) or re.search(r'message: "(.*?)"', said)
    return f"{said.partition(':')[0]}: {reason[1]}" if reason else said


def tables(argument: str) -> list[Table]:
    """What ``lancedb:ARGUMENT`` names. Raises InvalidSetting, InvalidInput or UnknownName."""
    return described(Table, argument, "lancedb")


# Filters as a condition of LanceDB's: on a column that holds a passage's terms (``retrieval.terms``) between spaces.


def joined(metadata: Mapping[str, Value]) -> str:
    """What stands in the column."""
    return f" {' '.join(terms.terms(metadata))} "


def condition(filters: Filters) -> str:
    """Terms are letters and digits: there is nothing to escape."""
    return _all(map(_one, filters))


def keys(held: Iterable[str]) -> set[str]:
    """Of the metadata of passages with these columns."""
    return {terms.key_of(term) for one in held for term in one.split() if term[0] == terms.key_term("")}


def _one(given: Filter) -> str:
    some = " OR ".join(map(_span, given.spans))
    return _all([_has(terms.key_term(given.key) + " "), f"NOT ({some})"]) if given.negated else f"({some})"


def _span(span: Span) -> str:
    low, high = span
    if low == high:
        return _has(low + " ")
    stem, mark, begin = low.partition("x")
    of_kind = stem + mark
    value = f"split_part(split_part({TERMS}, ' {of_kind}', 2), ' ', 1)"
    return f"({_has(of_kind)} AND {value} >= '{begin}' AND {value} <= '{high.removeprefix(of_kind)}')"


def _has(term: str) -> str:
    return f"{TERMS} LIKE '% {term}%'"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions)


# What we note beside a table that we built, in tables of its own: the content (``TABLE_gnothi``), the sources.

NOTES, SOURCES = "_gnothi", "_gnothi_sources"
ANEW = "gnothi index build SOURCE... --to lancedb:FOLDER#ANOTHER"
_AT_ONCE = 500


def read_notes(database: Any, table: Table) -> dict[str, Any]:
    """Nothing for a table of others. ``content`` changes with the passages, ``begun`` are the origins whose passages may be
    there although no source tells of them, ``lost`` those that have lost some, which no source may know."""
    try:
        rows = database.open_table(table.table + NOTES).search().to_list()
    except ERRORS as error:
        if "not found" in str(error):
            return {}
        raise table.refused(error) from None
    return dict(json.loads(rows[0]["notes"])) if rows else {}


def write_notes(database: Any, table: Table, notes: Mapping[str, Any]) -> None:
    """At once, in the place of those before."""
    import pyarrow

    schema = pyarrow.schema([pyarrow.field("notes", pyarrow.string())])
    database.create_table(table.table + NOTES, schema=schema, exist_ok=True).add(
        [{"notes": json.dumps(notes)}], mode="overwrite"
    )


class LanceLedger(Ledger):
    """Sources as rows."""

    def __init__(self, database: Any, table: Table, notes: dict[str, Any]) -> None:
        import pyarrow

        self._database, self._table, self.notes = database, table, notes
        self._schema = pyarrow.schema([pyarrow.field(name, pyarrow.string()) for name in ("key", "entry")])
        self._sources = database.create_table(table.table + SOURCES, schema=self._schema, exist_ok=True)
        if set(self._sources.schema.names) != {"key", "entry"}:
            raise earlier(table.name, ANEW)
        super().__init__(rows=(json.loads(row["entry"]) for row in self._sources.search().limit(None).to_list()))
        self.recover(notes["begun"], notes.get("lost", ()))

    def note(self, **changes: Any) -> None:
        self.notes |= changes
        write_notes(self._database, self._table, self.notes)

    def save(self) -> None:
        super().save()
        if self.notes["begun"] != self.orphans or self.notes.get("lost"):
            self.note(begun=self.orphans, lost=[])

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        import pyarrow

        if changed:
            rows = [{"key": one.key, "entry": json.dumps(as_row(one))} for one in changed]
            merge(self._sources, "key", pyarrow.Table.from_pylist(rows, schema=self._schema))
        for start in range(0, len(removed), _AT_ONCE):
            self._sources.delete(f"key IN ({', '.join(map(literal, removed[start : start + _AT_ONCE]))})")


def merge(lance: Any, key: str, rows: Any) -> None:
    """All of them at once: each takes the place of that with the same ``key``."""
    lance.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def literal(text: str) -> str:
    """A text in a condition."""
    return "'" + text.replace("'", "''") + "'"

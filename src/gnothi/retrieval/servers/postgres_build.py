"""Building a table of PostgreSQL, with what we note of its sources beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any

import psycopg

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.ledger import Entry, Ledger, as_row, earlier
from gnothi.retrieval.servers.postgres import (
    NOTES,
    Table,
    as_vector,
    exists,
    from_jsonb,
    read_notes,
    reason_of,
    refused,
    tables,
)
from gnothi.retrieval.servers.searching import METADATA, TERMS
from gnothi.retrieval.servers.writing import (
    Encode,
    ServerWriter,
    Standing,
    busy,
    check_vectors,
    encoded_by,
    foreign,
    only,
    size_of,
)
from gnothi.retrieval.targets import Target
from gnothi.retrieval.terms import terms
from gnothi.types import Passage

_ANEW = "gnothi index build SOURCE... --to postgres:...#ANOTHER"
_LOST = "\ufffd"
_SOURCES = "_gnothi_sources"


@contextmanager
def opened(argument: str) -> Iterator[Target]:
    """Raises IndexUnavailable where the server cannot be reached, another build writes to the table, or it is not ours."""
    table = only(tables(argument), f"postgres:{argument}", "server")
    encode, encoder_notes = encoded_by(table)
    try:
        with psycopg.connect(table.address, connect_timeout=max(1, round(table.timeout))) as connection:
            _lock(connection, table)
            _prepare(connection, table, encode, encoder_notes)
            with closing(PostgresLedger(connection, table)) as ledger:
                yield Target(PostgresWriter(connection, table, encode), ledger)
            connection.rollback()
    except psycopg.OperationalError as error:
        raise IndexUnavailable(
            f"{table.name}: PostgreSQL cannot go on: {reason_of(error)}. What was committed is kept: give the command again "
            "when the server answers."
        ) from None
    except psycopg.Error as error:
        raise refused(table, error) from None


class PostgresWriter(ServerWriter):
    """All in one transaction, which ends when the ledger is saved: passages and what is known of their sources go together."""

    def __init__(self, connection: psycopg.Connection[Any], table: Table, encode: Encode) -> None:
        super().__init__(read_notes(connection, table).get("content", ""), encode)
        self._connection, self._table = connection, table
        self.passages = self._count()

    def delete_origin(self, origin: str) -> None:
        query = self._table.sql("DELETE FROM {table} WHERE {origin} = %s")
        if self._connection.execute(query, (origin,)).rowcount:
            self._note("delete origin")

    def commit(self, complete: bool = True) -> None:
        notes = {"content": self._content, "complete": str(complete)}
        query = self._table.sql(
            "INSERT INTO {notes} VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            notes=self._table.beside(NOTES),
        )
        with self._connection.cursor() as cursor:
            cursor.executemany(query, list(notes.items()))
        self.passages, self.pending_bytes = self._count(), 0

    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        passages = [passage for passage, _ in written.values()]
        rows: dict[str, tuple[str, list[Any]]] = {  # column, kind and values
            "id": ("text", [one.id for one in passages]),
            "title": ("text", [one.title for one in passages]),
            "text": ("text", [one.text for one in passages]),
            "origin": ("text", [origin for _, origin in written.values()]),
            "metadata": ("jsonb", [one.known.packed for one in passages]),
            "terms": ("text", [" ".join(terms(one.metadata)) for one in passages]),
        }
        if self._encode:
            rows["vectors"] = "vector", [as_vector(one) for one in self._encode(passages)]
        aliases = ", ".join(f"given_{name}" for name in rows)
        columns = ", ".join(f"{{{name}}}" for name in rows)
        values = ", ".join(f"%s::text[]::{kind}[]" for kind, _ in rows.values())
        changed = ", ".join(f"{{{name}}} = excluded.{{{name}}}" for name in rows if name != "id")
        selected = aliases.replace("given_terms", "string_to_array(given_terms, ' ')")
        self._connection.execute(
            self._table.sql(
                f"INSERT INTO {{table}} ({columns}) SELECT {selected} FROM unnest({values}) AS given({aliases})"
                f" ON CONFLICT ({{id}}) DO UPDATE SET {changed}"
            ),
            [column for _, column in rows.values()],
        )

    def _storable(self, passage: Passage) -> Passage:
        """Without the character that PostgreSQL does not hold."""
        if "\0" in f"{passage.id}{passage.text}{passage.title}{''.join(map(str, chain(*passage.metadata.items())))}":
            known = {
                key.replace("\0", _LOST): one.replace("\0", _LOST) if isinstance(one, str) else one
                for key, one in passage.metadata.items()
            }
            passage_id, text, title = (one.replace("\0", _LOST) for one in (passage.id, passage.text, passage.title))
            passage = Passage(passage_id, text, title, known)
        return passage.storable()

    def _standing(self, ids: Sequence[str]) -> Standing:
        query = self._table.sql("SELECT {id}, {text}, {title}, {origin}, {metadata} FROM {table} WHERE {id} = ANY(%s)")
        rows = self._connection.execute(query, (list(ids),)).fetchall()
        return {row[0]: (Passage(row[0], row[1], row[2], from_jsonb(row[4])), row[3]) for row in rows}

    def _count(self) -> int:
        row = self._connection.execute(self._table.sql("SELECT count(*) FROM {table}"), ()).fetchone()
        return int(row[0]) if row else 0


class PostgresLedger(Ledger):
    """A table beside that of the passages, in the same transactions."""

    def __init__(self, connection: psycopg.Connection[Any], table: Table) -> None:
        self._connection, self._table, self._sources = connection, table, table.beside(_SOURCES)
        try:
            rows = connection.execute(table.sql("SELECT entry FROM {sources}", sources=self._sources), ()).fetchall()
        except psycopg.errors.UndefinedColumn:
            raise earlier(table.name, _ANEW) from None
        super().__init__(rows=(json.loads(entry) for (entry,) in rows))

    def save(self) -> None:
        super().save()
        self._connection.commit()

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        delete = self._table.sql("DELETE FROM {sources} WHERE key = ANY(%s)", sources=self._sources)
        self._connection.execute(delete, ([*removed, *(entry.key for entry in changed)],))
        insert = self._table.sql("INSERT INTO {sources} VALUES (%s, %s)", sources=self._sources)
        with self._connection.cursor() as cursor:
            cursor.executemany(insert, [(entry.key, json.dumps(as_row(entry))) for entry in changed])


def _lock(connection: psycopg.Connection[Any], table: Table) -> None:
    """Held until the connection ends, also by a kill. A server takes a moment to see that one has ended, hence the wait."""
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '5s'")
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"gnothi {table.table}",))
    except psycopg.errors.LockNotAvailable:
        raise IndexUnavailable(busy(table.name)) from None


def _prepare(connection: psycopg.Connection[Any], table: Table, encode: Encode, encoder_notes: Mapping[str, str]) -> None:
    """Make what is not there yet; nothing of others is changed."""
    if not (table.title and table.words):
        raise InvalidSetting("title and words of a table that is built: got an empty name, expected names of columns.")
    notes = read_notes(connection, table)
    if exists(connection, table.parts()):
        if "content" not in notes:
            raise foreign(table.name, table.noun)
        check_vectors(notes, table.name, table.encoder)
        row = connection.execute(table.columns(), (METADATA, TERMS)).fetchone()
        if row is None or row[0] < 2:
            raise earlier(table.name, _ANEW)
        return
    names = {"notes": table.beside(NOTES), "sources": table.beside(_SOURCES), "computed": table.computed()}

    def run(query: str) -> None:
        connection.execute(table.sql(query, **names), ())

    run(
        'CREATE TABLE {table} ({id} text COLLATE "C" PRIMARY KEY, {title} text NOT NULL, {text} text NOT NULL,'
        " {origin} text NOT NULL, {metadata} jsonb NOT NULL, {terms} text[] NOT NULL,"
        " {words} tsvector GENERATED ALWAYS AS {computed} STORED)"
    )
    run("CREATE INDEX ON {table} USING gin ({words})")
    run("CREATE INDEX ON {table} ({origin})")
    run("CREATE INDEX ON {table} USING gin ({terms})")
    run("CREATE TABLE IF NOT EXISTS {sources} (key text PRIMARY KEY, entry text NOT NULL)")
    run("CREATE TABLE {notes} (name text PRIMARY KEY, value text NOT NULL)")
    with connection.cursor() as cursor:
        cursor.executemany(table.sql("INSERT INTO {notes} VALUES (%s, %s)", **names), [("content", ""), *encoder_notes.items()])
    if size := size_of(encode):
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        run(f"ALTER TABLE {{table}} ADD {{vectors}} vector({size:d}) NOT NULL")
    connection.commit()

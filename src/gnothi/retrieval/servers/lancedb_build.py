"""Building a table of LanceDB, with what we note of its content and sources beside it, in tables of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from gnothi.errors import GnothiError, IndexUnavailable, InvalidSetting
from gnothi.locks import hold
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.folder import disk_errors
from gnothi.retrieval.ledger import Entry, as_row, earlier
from gnothi.retrieval.servers.lancedb import ERRORS, NOTES, Table, joined, read_notes, tables
from gnothi.retrieval.servers.searching import METADATA, ORIGIN, TERMS
from gnothi.retrieval.servers.writing import (
    Encode,
    NotedLedger,
    NotedWriter,
    Standing,
    busy,
    check_vectors,
    encoded_by,
    foreign,
    only,
    size_of,
)
from gnothi.retrieval.targets import Target, Written
from gnothi.retrieval.writer import Put
from gnothi.types import Passage

_SOURCES = "_gnothi_sources"
_ANEW = "gnothi index build SOURCE... --to lancedb:FOLDER#ANOTHER"
_AT_ONCE = 500


@contextmanager
def opened(argument: str) -> Iterator[Target]:
    """Raises IndexUnavailable where the folder cannot be written, another build writes to the table, or it is not ours."""
    table = only(tables(argument), f"lancedb:{argument}", "folder")
    if len({*table.columns, table.words, table.vectors}) != 5 or not (table.title and table.words and table.vectors):
        raise InvalidSetting(
            "id, title, text, words and vectors of a table that is built: expected five different names of columns."
        )
    database = table.connect()
    encode, encoder_notes = encoded_by(table)
    with _alone(table):
        try:
            lance, notes = _prepared(database, table, encode, encoder_notes)
            with closing(LanceLedger(database, table, notes)) as ledger:
                yield Target(LanceWriter(lance, table, ledger, encode), ledger)
        except GnothiError:
            raise
        except ERRORS as error:
            raise table.refused(error) from None


def _write_notes(database: Any, table: Table, notes: Mapping[str, Any]) -> None:
    """At once, in the place of those before."""
    import pyarrow

    schema = pyarrow.schema([pyarrow.field("notes", pyarrow.string())])
    database.create_table(table.table + NOTES, schema=schema, exist_ok=True).add(
        [{"notes": json.dumps(notes)}], mode="overwrite"
    )


class LanceLedger(NotedLedger):
    """Sources as rows."""

    def __init__(self, database: Any, table: Table, notes: dict[str, Any]) -> None:
        import pyarrow

        def note(**changes: Any) -> None:
            _write_notes(database, table, {**self.notes, **changes})

        self._schema = pyarrow.schema([pyarrow.field(name, pyarrow.string()) for name in ("key", "entry")])
        self._sources = database.create_table(table.table + _SOURCES, schema=self._schema, exist_ok=True)
        if set(self._sources.schema.names) != {"key", "entry"}:
            raise earlier(table.name, _ANEW)
        super().__init__((json.loads(row["entry"]) for row in self._sources.search().limit(None).to_list()), notes, note)

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        import pyarrow

        if changed:
            rows = [{"key": one.key, "entry": json.dumps(as_row(one))} for one in changed]
            _merge(self._sources, "key", pyarrow.Table.from_pylist(rows, schema=self._schema))
        for start in range(0, len(removed), _AT_ONCE):
            self._sources.delete(f"key IN ({_listed(removed[start : start + _AT_ONCE])})")


def _merge(lance: Any, key: str, rows: Any) -> None:
    """All of them at once: each takes the place of that with the same ``key``."""
    lance.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _listed(texts: Sequence[str]) -> str:
    """In a condition."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


class LanceWriter(NotedWriter):
    """What is put is held here until ``commit``, which notes that the content changes, where passages come from and what loses
    some, merges the passages, deletes, and notes the rest; the ledger follows. A kill in between costs reading again."""

    def __init__(self, lance: Any, table: Table, ledger: LanceLedger, encode: Encode) -> None:
        super().__init__(ledger, encode)
        self._lance, self._table = lance, table
        self._noted = self._content
        self._waiting: Standing = {}
        self._vectors: dict[str, Vectors] = {}
        self._emptied: list[str] = []
        self.passages: int = lance.count_rows()

    def put_all(self, passages: Written) -> list[Put]:
        if {origin for _, origin in passages} & set(self._emptied):
            self._flush()
        return super().put_all(passages)

    def _write(self, written: Mapping[str, tuple[Passage, str]]) -> None:
        self._waiting |= written
        if self._encode:
            vectors = self._encode([passage for passage, _ in written.values()])
            self._vectors |= dict(zip(written, vectors, strict=True))

    def delete_origin(self, origin: str) -> None:
        if any(one == origin for _, one in self._waiting.values()):
            self._flush()
        if self._lance.count_rows(f"{ORIGIN} = {_listed([origin])}"):
            self._emptied.append(origin)
            self._lost.add(origin)
            self._note("delete origin")

    def commit(self, complete: bool = True) -> None:
        self._flush()
        if complete:
            self._lance.optimize()  # what was added becomes part of the index of words; until then it is read row by row
        self._note_state(complete)
        self._noted = self._content
        self._begun, self._lost = set(), set()  # the ledger is saved before anything else is written
        self.passages = self._lance.count_rows()

    def _flush(self) -> None:
        if self._content != self._noted:
            self._begun |= {origin for _, origin in self._waiting.values()} | set(self._emptied)
            self._note_state(complete=False)
            self._noted = self._content
        if self._waiting:
            _merge(self._lance, self._table.id, self._rows())
        if self._emptied:
            self._lance.delete(f"{ORIGIN} IN ({_listed(self._emptied)})")
        self._waiting, self._vectors, self._emptied, self.pending_bytes = {}, {}, [], 0

    def _rows(self) -> Any:
        import pyarrow

        table = self._table
        names = [table.id, table.text, table.title, table.words, ORIGIN, METADATA, TERMS, table.vectors]
        rows = [
            (*texts, f"{one.title}\n{one.text}", origin, one.known.packed, joined(one.metadata), self._vectors.get(one.id))
            for one, origin in self._waiting.values()
            for texts in [(one.id, one.text, one.title)]
        ]
        return pyarrow.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=self._lance.schema)

    def _standing(self, ids: Sequence[str]) -> Standing:
        """As the next commit will have them."""
        if not ids:
            return {}
        table = self._table
        condition = f"`{table.id}` IN ({_listed(sorted(set(ids)))})"
        rows = self._lance.search().where(condition).select([*table.columns, ORIGIN, METADATA]).limit(None).to_list()
        standing: Standing = {}
        for row in rows:
            passage = Passage(row[table.id], row[table.text], row[table.title], unpacked(row[METADATA]))
            standing[passage.id] = passage, row[ORIGIN]
        return {key: entry for key, entry in standing.items() if entry[1] not in self._emptied} | {
            key: self._waiting[key] for key in ids if key in self._waiting
        }


def _alone(table: Table) -> AbstractContextManager[object]:
    """The only build of the table. An object store has no locks."""
    if table.folder is None:
        return nullcontext()
    with disk_errors(table.folder):
        table.folder.mkdir(parents=True, exist_ok=True)
        return hold(table.folder / f"{table.table}.gnothi-lock", IndexUnavailable, busy(table.name))


def _prepared(database: Any, table: Table, encode: Encode, encoder_notes: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """The table and its notes. Makes what is not there yet; nothing of others is changed."""
    from lancedb.index import FTS, BTree

    notes = read_notes(database, table)
    try:
        lance = database.open_table(table.table)
    except ERRORS as error:
        if "not found" not in str(error):
            raise
        database.drop_table(table.table + _SOURCES, ignore_missing=True)  # it tells of passages that are gone
        notes = {**encoder_notes, "content": "", "complete": False, "begun": [], "lost": []}
        schema = _schema(table, size_of(encode))
        _write_notes(database, table, notes)
        lance = database.create_table(table.table, schema=schema)
    if not notes:
        raise foreign(table.name, table.noun)
    check_vectors(notes, table.name, table.encoder)
    if METADATA not in lance.schema.names:
        raise earlier(table.name, _ANEW)
    lacking = {*table.columns, table.words, *([table.vectors] if encode else [])} - set(lance.schema.names)
    if lacking:
        raise IndexUnavailable(f"{table.name} was built with other names of columns: it has no {', '.join(sorted(lacking))}.")
    indexed = {column.strip("`") for index in lance.list_indices() for column in index.columns}
    # The steps of our own analyser: no word is left out.
    kinds = {table.id: BTree(), ORIGIN: BTree(), table.words: FTS(remove_stop_words=False)}
    for column, kind in kinds.items():
        if column not in indexed:
            lance.create_index(column, config=kind)
    return lance, notes


def _schema(table: Table, size: int) -> Any:
    """``size`` of a vector in numbers, 0 without."""
    import pyarrow

    names = [table.id, table.text, table.title, table.words, ORIGIN, METADATA, TERMS]
    fields = [pyarrow.field(name, pyarrow.string(), nullable=False) for name in names]
    vectors = [pyarrow.field(table.vectors, pyarrow.list_(pyarrow.float32(), size), nullable=False)] if size else []
    return pyarrow.schema(fields + vectors)

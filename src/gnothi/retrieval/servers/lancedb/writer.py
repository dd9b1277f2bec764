"""Building a table of LanceDB, with what we note of its sources beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from gnothi.errors import GnothiError, IndexUnavailable, InvalidSetting
from gnothi.locks import hold
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.dense.encoders import EncodePassages, Encoding, Vectors
from gnothi.retrieval.folder import disk_errors
from gnothi.retrieval.ledger import earlier
from gnothi.retrieval.servers.lancedb.table import (
    ANEW,
    ERRORS,
    METADATA,
    ORIGIN,
    SOURCES,
    TERMS,
    LanceLedger,
    Table,
    joined,
    literal,
    merge,
    read_notes,
    tables,
    write_notes,
)
from gnothi.retrieval.servers.searching import check_vectors
from gnothi.retrieval.servers.writing import ServerWriter, Standing, busy, foreign, only
from gnothi.retrieval.targets import Target, Written
from gnothi.retrieval.writer import Put
from gnothi.types import Passage


@contextmanager
def opened(argument: str) -> Iterator[Target]:
    """Raises IndexUnavailable where the folder cannot be written, another build writes to the table, or it is not ours."""
    table = only(tables(argument), f"lancedb:{argument}", "folder", "table")
    if len({*table.columns, table.words, table.vectors}) != 5 or not (table.title and table.words and table.vectors):
        raise InvalidSetting(
            "id, title, text, words and vectors of a table that is built: expected five different names of columns."
        )
    database = table.connect()
    encode = Encoding(table.encoder).passages() if table.encoder else None
    with _alone(table):
        try:
            lance, notes = _prepared(database, table, encode)
            ledger = LanceLedger(database, table, notes)
            yield Target(LanceWriter(lance, table, ledger, encode), ledger)
        except GnothiError:
            raise
        except ERRORS as error:
            raise table.refused(error) from None


class LanceWriter(ServerWriter):
    """What is put is held here until ``commit``, which notes that the content changes, where passages come from and what loses
    some, merges the passages, deletes, and notes the rest; the ledger follows. A kill in between costs reading again:
    passages that are there are recognised, and those of an origin that no source knows go at the end of the next build."""

    def __init__(self, lance: Any, table: Table, ledger: LanceLedger, encode: EncodePassages | None) -> None:
        super().__init__(str(ledger.notes["content"]), encode, ledger.notes.get("lost", ()))
        self._lance, self._table, self._ledger = lance, table, ledger
        self._noted = self._content
        self._waiting: Standing = {}
        self._vectors: dict[str, Vectors] = {}
        self._begun: set[str] = set()
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
        if self._lance.count_rows(f"{ORIGIN} = {literal(origin)}"):
            self._emptied.append(origin)
            self._lost.add(origin)
            self._note("delete origin")

    def commit(self, complete: bool = True) -> None:
        self._flush()
        if complete:
            self._lance.optimize()  # what was added becomes part of the index of words; until then it is read row by row
        self._write_notes(complete)
        self._begun, self._lost = set(), set()  # the ledger is saved before anything else is written
        self.passages = self._lance.count_rows()

    def _flush(self) -> None:
        if self._content != self._noted:
            self._write_notes(complete=False)
        if self._waiting:
            merge(self._lance, self._table.id, _rows(self._lance.schema, self._table, self._waiting.values(), self._vectors))
        if self._emptied:
            self._lance.delete(f"{ORIGIN} IN ({', '.join(map(literal, self._emptied))})")
        self._waiting, self._vectors, self._emptied, self.pending_bytes = {}, {}, [], 0

    def _write_notes(self, complete: bool) -> None:
        self._begun |= {origin for _, origin in self._waiting.values()} | set(self._emptied)
        begun, lost = sorted({*self._begun, *self._ledger.orphans}), sorted(self._lost)
        self._ledger.note(content=self._content, complete=complete, begun=begun, lost=lost)
        self._noted = self._content

    def _standing(self, ids: Sequence[str]) -> Standing:
        """As the next commit will have them."""
        if not ids:
            return {}
        table = self._table
        condition = f"`{table.id}` IN ({', '.join(map(literal, sorted(set(ids))))})"
        rows = self._lance.search().where(condition).select([*table.columns, ORIGIN, METADATA]).limit(None).to_list()
        found: Standing = {}
        for row in rows:
            passage = Passage(row[table.id], row[table.text], row[table.title], unpacked(row[METADATA]))
            found[passage.id] = passage, row[ORIGIN]
        return {key: one for key, one in found.items() if one[1] not in self._emptied} | {
            key: self._waiting[key] for key in ids if key in self._waiting
        }


def _alone(table: Table) -> AbstractContextManager[object]:
    """The only build of the table. An object store has no locks."""
    if table.folder is None:
        return nullcontext()
    with disk_errors(table.folder):
        table.folder.mkdir(parents=True, exist_ok=True)
        return hold(table.folder / f"{table.table}.gnothi-lock", IndexUnavailable, busy(table.name))


def _prepared(database: Any, table: Table, encode: EncodePassages | None) -> tuple[Any, dict[str, Any]]:
    """The table and its notes. Makes what is not there yet; nothing of others is changed."""
    from lancedb.index import FTS, BTree

    notes = read_notes(database, table)
    try:
        lance = database.open_table(table.table)
    except ERRORS as error:
        if "not found" not in str(error):
            raise
        database.drop_table(table.table + SOURCES, ignore_missing=True)  # it tells of passages that are gone
        weights = Encoding(table.encoder).fingerprint() if encode else ""
        ours = {"encoder_name": table.encoder, "encoder": weights}
        size = encode([Passage("", "size")]).shape[1] if encode else 0
        notes = ours | {"content": "", "complete": False, "begun": [], "lost": []}
        write_notes(database, table, notes)
        lance = database.create_table(table.table, schema=_schema(table, size))
    if not notes:
        raise foreign(table.name, "table")
    check_vectors(notes, table.name, table.encoder)
    if METADATA not in lance.schema.names:
        raise earlier(table.name, ANEW)
    lacking = {*table.columns, table.words, *([table.vectors] if encode else [])} - set(lance.schema.names)
    if lacking:
        raise IndexUnavailable(f"{table.name} was built with other names of columns: it has no {', '.join(sorted(lacking))}.")
    made = {column.strip("`") for index in lance.list_indices() for column in index.columns}
    # The steps of our own analyser: no word is left out.
    kinds = {table.id: BTree(), ORIGIN: BTree(), table.words: FTS(remove_stop_words=False)}
    for column, kind in kinds.items():
        if column not in made:
            lance.create_index(column, config=kind)
    return lance, notes


def _schema(table: Table, size: int) -> Any:
    """``size`` of a vector in numbers, 0 without."""
    import pyarrow

    names = [table.id, table.text, table.title, table.words, ORIGIN, METADATA, TERMS]
    fields = [pyarrow.field(name, pyarrow.string(), nullable=False) for name in names]
    vectors = [pyarrow.field(table.vectors, pyarrow.list_(pyarrow.float32(), size), nullable=False)] if size else []
    return pyarrow.schema(fields + vectors)


def _rows(schema: Any, table: Table, passages: Iterable[tuple[Passage, str]], vectors: Mapping[str, Vectors]) -> Any:
    import pyarrow

    def texts(one: Passage) -> tuple[str, ...]:
        return one.id, one.text, one.title, f"{one.title}\n{one.text}"

    names = [table.id, table.text, table.title, table.words, ORIGIN, METADATA, TERMS, table.vectors]
    values = [(*texts(one), origin, one.known.packed, joined(one.metadata), vectors.get(one.id)) for one, origin in passages]
    return pyarrow.Table.from_pylist([dict(zip(names, row, strict=True)) for row in values], schema=schema)

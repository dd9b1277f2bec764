"""Searching tables of LanceDB by words (BM25 over the column that is searched), by vectors, or by both."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.files import home_expanded
from gnothi.protocols import Retriever
from gnothi.retrieval import terms
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filter, Filters, Span
from gnothi.retrieval.servers.searching import (
    METADATA,
    TERMS,
    Place,
    Results,
    ServerPart,
    all_contents,
    check_weights,
    described,
    searcher,
)
from gnothi.types import Passage, ScoredPassage, Value, encodable

NOTES = "_gnothi"
"""How the table of what we note ends."""
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
ERRORS = (ValueError, RuntimeError, OSError)
"""What LanceDB raises, whatever went wrong."""
_MORE = 16
_DISTANCES = {"inner": "dot", "cosine": "cosine", "euclidean": "l2"}


@dataclass(frozen=True)
class Table(Place):
    """``server`` is a folder, or the address of an object store as LanceDB takes it; ``endpoint`` and ``region`` say which one
    answers to ``s3://``. Its keys come from the environment alone. Empty ``words``: the text is searched. ``vectors`` is a
    column of lists of one length."""

    table: str = "passages"
    endpoint: str = ""
    region: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        scheme, mark, rest = self.server.partition("://")
        if mark and "@" in rest.partition("/")[0]:
            raise InvalidSetting(
                f"the address of an index: got one with keys, which runs would record; expected {scheme}://BUCKET/FOLDER. Put "
                "the keys into the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        if not mark and (self.endpoint or self.region):
            raise InvalidSetting(
                f"endpoint and region are those of an object store: got them with the folder {self.server!r}, expected "
                's3://BUCKET/FOLDER as server, or "" for both.'
            )

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
        """Options of an object store for LanceDB, beside what it finds in the environment."""
        if self.folder is not None:
            return None
        options = {"endpoint": self.endpoint, "region": self.region}
        plain = {"allow_http": "true"} if self.endpoint.startswith("http://") else {}
        return {name: value for name, value in options.items() if value} | plain

    def refused(self, error: Exception) -> IndexUnavailable:
        reason = _reason(error).rstrip(".")
        for value in filter(None, map(os.environ.get, _SECRETS)):  # a store may repeat what it was given
            reason = reason.replace(value, "...")
        where = "the disk" if self.folder is not None else "the object store: its endpoint, region and keys"
        return IndexUnavailable(f"{self.name}: LanceDB says: {reason}. Check the names in <--index lancedb:...>, and {where}.")


def _reason(error: Exception) -> str:
    """The first line, or of a store's long one the part that says why: what the store answered, or what the network did."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    reason = re.search(r"<Message>(.*?)</Message>", line) or re.search(r'message: "(.*?)"', line)
    return f"{line.partition(':')[0]}: {reason[1]}" if reason else line


def tables(argument: str) -> list[Table]:
    """What ``lancedb:ARGUMENT`` names. Raises InvalidSetting, InvalidInput or UnknownName."""
    return described(Table, argument, "lancedb")


# Filters as a condition of LanceDB's: on a column that holds a passage's terms (``retrieval.terms``) between spaces.


def joined(metadata: Mapping[str, Value]) -> str:
    """What stands in the column."""
    return f" {' '.join(terms.terms(metadata))} "


def condition(filters: Filters) -> str:
    """Terms are letters and digits: there is nothing to escape."""
    return _all(map(_filter_sql, filters))


def keys(held: Iterable[str]) -> set[str]:
    """Of the metadata of passages with these columns."""
    return {terms.key_of(term) for one in held for term in one.split() if term[0] == terms.key_term("")}


def _filter_sql(condition: Filter) -> str:
    some = " OR ".join(map(_span, condition.spans))
    return _all([_has(terms.key_term(condition.key) + " "), f"NOT ({some})"]) if condition.negated else f"({some})"


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


def read_notes(database: Any, table: Table) -> dict[str, Any]:
    """Nothing for a table of others."""
    try:
        rows = database.open_table(table.table + NOTES).search().to_list()
    except ERRORS as error:
        if "not found" in str(error):
            return {}
        raise table.refused(error) from None
    return dict(json.loads(rows[0]["notes"])) if rows else {}


class Server:
    """A table as it was when it was opened."""

    optional = False

    def __init__(self, table: Table) -> None:
        self.table, self.name = table, table.name
        self.lance = _checked(table)
        self.rows: int = self.lance.count_rows()

    async def keys(self) -> Sequence[str]:
        """Of the metadata of all passages."""
        return await asyncio.to_thread(self._keys)

    def _keys(self) -> Sequence[str]:
        if TERMS not in self.lance.schema.names:
            return ()
        try:
            batches = self.lance.search().select([TERMS]).to_batches()
            return sorted(keys(value for batch in batches for value in batch.column(TERMS).to_pylist()))
        except ERRORS as error:
            raise self.table.refused(error) from None

    async def aclose(self) -> None:
        """Nothing is held that ends not by itself."""


class _Part(ServerPart[Server]):
    """Passages that hold any word of the query, or whose vectors are near that of it."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Results:
        server, vector = self._server, await self.vector(query)
        table, lance = server.table, server.lance
        if vector is not None and len(vector) != (size := _size(lance, table)):
            raise IndexUnavailable(
                f"{self.name}: {table.encoder!r} makes vectors of {len(vector)} numbers, those of the column "
                f"{table.vectors!r} have {size}. Name the encoder that made them."
            )
        if filters and TERMS not in lance.schema.names:
            raise cannot(self.name, f"column {TERMS}")

        def ask() -> Any:
            where = [condition(filters)] if filters else []
            if vector is None:
                from lancedb.query import MatchQuery

                search = lance.search(MatchQuery(encodable(query), table.words or table.text), query_type="fts")
            else:
                where = [f"`{table.vectors}` IS NOT NULL", *where]
                search = lance.search(vector, vector_column_name=table.vectors, query_type="vector")
                search = search.distance_type(_DISTANCES[table.distance])
            return search.where(" AND ".join(where), prefilter=True) if where else search

        def best() -> Results:
            """LanceDB leaves open which of several with one score come first: all with the last one's are asked for."""
            column = "_score" if vector is None else "_distance"
            columns = [*table.columns, *([METADATA] if METADATA in lance.schema.names else []), column]
            least = min(k, server.rows)
            wanted = least + _MORE
            while least:
                rows: list[Mapping[str, Any]] = ask().select(columns).limit(wanted).to_list()
                if len(rows) < wanted or rows[least - 1][column] != rows[-1][column]:
                    passages = [_scored(row, column, table) for row in rows]
                    return sorted(passages, key=lambda one: (-one.score, one.passage.id))[:least]
                wanted *= 4
            return []

        try:
            return await asyncio.to_thread(best)
        except ERRORS as error:
            raise table.refused(error) from None


def _scored(row: Mapping[str, Any], column: str, table: Table) -> ScoredPassage:
    """LanceDB has 1 - the inner product, and the square of the euclidean distance."""
    score = float(row[column])
    if column == "_distance":
        score = {"inner": 1.0 - score, "euclidean": -math.sqrt(max(score, 0.0))}.get(table.distance, -score)
    title = str((row[table.title] if table.title else "") or "")
    return ScoredPassage(
        Passage(f"{table.prefix}{row[table.id]}", str(row[table.text] or ""), title, unpacked(row.get(METADATA))), score
    )


def opened(argument: str) -> Retriever:
    """Raises IndexUnavailable where there is no such table, or it lacks a column; MissingDependency without lancedb."""
    places = tables(argument)
    return searcher(
        places,
        f"lancedb:{argument}",
        _check_vectors,
        lambda table, encoder: _Part(Server(table), encoder),
        # Each table knows only how rare words are among its own passages: scores of two are not of one kind.
        alike=len(places) == 1,
    )


def _check_vectors(table: Table) -> None:
    if table.by != "words":
        check_weights(read_notes(_connected(table), table), table.name, table.encoder)


def _size(lance: Any, table: Table) -> int:
    """Of a vector, in numbers."""
    import pyarrow

    kind = lance.schema.field(table.vectors).type
    if not pyarrow.types.is_fixed_size_list(kind):
        raise IndexUnavailable(f"{table.name}: the column {table.vectors!r} holds {kind}, expected vectors of one length.")
    return int(kind.list_size)


def fingerprint(argument: str) -> str:
    """Of tables that we built; empty where one of them was made by others."""
    return all_contents(str(read_notes(_connected(table), table).get("content", "")) for table in tables(argument))


def _connected(table: Table) -> Any:
    if table.folder is not None and not table.folder.is_dir():  # which to connect to would make
        raise IndexUnavailable(
            f"{table.name}: there is no folder {table.folder}. Check its name, or build it: "
            f"`gnothi index build SOURCE --to lancedb:{table.server}#{table.table}`."
        )
    return table.connect()


def _checked(table: Table) -> Any:
    """The table, after a look at its columns."""
    database = _connected(table)
    try:
        there = sorted(name for name in database.list_tables(limit=1000).tables if not name.endswith(NOTES))
        lance = database.open_table(table.table)
        schema = lance.schema
    except ERRORS as error:
        if "not found" not in str(error):
            raise table.refused(error) from None
        raise IndexUnavailable(
            f"{table.server}, a folder of LanceDB: got no table {table.table!r}, expected one of {', '.join(there) or 'none'}. "
            "Name it behind the folder: <--index lancedb:FOLDER#TABLE>."
        ) from None
    words = () if table.by == "vectors" else (table.words or table.text,)
    vectors = () if table.by == "words" else (table.vectors,)
    lacking = [name for name in {*table.columns, *words, *vectors} if name not in schema.names]
    if lacking:
        raise IndexUnavailable(
            f"{table.name}: got no column {', '.join(sorted(lacking))}; there are {', '.join(schema.names)}. Say in a file, "
            'lancedb:FILE.toml, what they are called: id, title, text, and words, the one that is searched ("" for the text), '
            "or vectors."
        )
    if vectors:
        _size(lance, table)
    return lance

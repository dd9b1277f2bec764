"""Searching tables of LanceDB by words (BM25 over the column that is searched), by vectors, or by both."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.servers.lancedb.table import ERRORS, METADATA, NOTES, TERMS, Table, condition, keys, read_notes, tables
from gnothi.retrieval.servers.searching import Encoder, Found, Merged, all_contents, check_weights, searcher
from gnothi.types import Passage, ScoredPassage, encodable

_MORE = 16
_DISTANCES = {"inner": "dot", "cosine": "cosine", "euclidean": "l2"}


class _Part:
    """A table as it was when it was opened."""

    optional = False

    def __init__(self, table: Table) -> None:
        self.name, self._table = table.name, table
        self._lance = _checked(table)
        self._rows: int = self._lance.count_rows()

    async def keys(self) -> Sequence[str]:
        return await asyncio.to_thread(_keys, self._lance, self._table)

    async def aclose(self) -> None:
        """Nothing is held that ends not by itself."""

    async def _best(
        self, ask: Callable[[], Any], k: int, filters: Filters, column: str, score: Callable[[float], float]
    ) -> Found:
        """The k best of a search, whose scores are made of ``column``. LanceDB leaves open which of several with one score come
        first: all with the last one's are asked for."""
        table, k = self._table, min(k, self._rows)
        columns = [*_shown(self._lance, table), column]

        def best() -> Found:
            wanted = k + _MORE
            while k:
                rows: list[Mapping[str, Any]] = ask().select(columns).limit(wanted).to_list()
                if len(rows) < wanted or rows[k - 1][column] != rows[-1][column]:
                    found = [scored(row, score(float(row[column])), table) for row in rows]
                    return sorted(found, key=lambda one: (-one.score, one.passage.id))[:k]
                wanted *= 4
            return []

        if filters and TERMS not in self._lance.schema.names:
            raise cannot(self.name, f"column {TERMS}")
        try:
            return await asyncio.to_thread(best)
        except ERRORS as error:
            raise table.refused(error) from None


class ByWords(_Part):
    """Passages that hold any word of the query."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        from lancedb.query import MatchQuery

        def ask() -> Any:
            asked = MatchQuery(encodable(query), self._table.words or self._table.text)
            search = self._lance.search(asked, query_type="fts")
            return search.where(condition(filters), prefilter=True) if filters else search

        return await self._best(ask, k, filters, "_score", float)


class ByVectors(_Part):
    """Passages whose vectors are near that of the query."""

    def __init__(self, table: Table, encoder: Encoder) -> None:
        super().__init__(table)
        self._encoder = encoder
        self._size = _size(self._lance, table)

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        table, vector = self._table, await self._encoder.submit(encodable(query))
        if len(vector) != self._size:
            raise IndexUnavailable(
                f"{self.name}: {table.encoder!r} makes vectors of {len(vector)} numbers, those of the column "
                f"{table.vectors!r} have {self._size}. Name the encoder that made them."
            )
        where = " AND ".join([f"`{table.vectors}` IS NOT NULL", *([condition(filters)] if filters else [])])

        def ask() -> Any:
            search = self._lance.search(vector, vector_column_name=table.vectors, query_type="vector")
            return search.distance_type(_DISTANCES[table.distance]).where(where, prefilter=True)

        return await self._best(ask, k, filters, "_distance", self._score)

    async def aclose(self) -> None:
        await self._encoder.aclose()

    def _score(self, distance: float) -> float:
        """LanceDB has 1 - the inner product, and the square of the euclidean distance."""
        if self._table.distance == "inner":
            return 1.0 - distance
        return -math.sqrt(max(distance, 0.0)) if self._table.distance == "euclidean" else -distance


def scored(row: Mapping[str, Any], score: float, table: Table) -> ScoredPassage:
    title = row[table.title] if table.title else ""
    metadata = unpacked(row.get(METADATA))
    return ScoredPassage(
        Passage(f"{table.prefix}{row[table.id]}", str(row[table.text] or ""), str(title or ""), metadata), score
    )


def _shown(lance: Any, table: Table) -> list[str]:
    return [*table.columns, *([METADATA] if METADATA in lance.schema.names else [])]


def _keys(lance: Any, table: Table) -> Sequence[str]:
    if TERMS not in lance.schema.names:
        return ()
    try:
        batches = lance.search().select([TERMS]).to_batches()
        return sorted(keys(value for batch in batches for value in batch.column(TERMS).to_pylist()))
    except ERRORS as error:
        raise table.refused(error) from None


def opened(argument: str) -> Retriever:
    """Raises IndexUnavailable where there is no such table, or it lacks a column; MissingDependency without lancedb."""
    found, name = tables(argument), f"lancedb:{argument}"
    return searcher(
        found,
        name,
        _check_vectors,
        # Each table knows only how rare words are among its own passages: scores of two are not of one kind.
        lambda: Merged([ByWords(table) for table in found], name, comparable=len(found) == 1),
        lambda made: [ByVectors(table, made[table.encoder]) for table in found],
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
    return lance

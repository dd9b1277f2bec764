"""Searching tables of LanceDB by words: BM25 over the column that is searched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.servers.lancedb.notes import NOTES, read_notes
from gnothi.retrieval.servers.lancedb.table import ERRORS, Table, tables
from gnothi.retrieval.servers.merged import Found, Merged
from gnothi.types import Passage, ScoredPassage, encodable

_MORE = 16


class ByWords:
    """Passages that hold any word of the query, as the table was when it was opened."""

    optional = False

    def __init__(self, table: Table) -> None:
        self.name, self._table = table.name, table
        self._lance = _checked(table)
        self._rows: int = self._lance.count_rows()

    async def search(self, query: str, k: int) -> Found:
        try:
            return await asyncio.to_thread(self._search, encodable(query), min(k, self._rows))
        except ERRORS as error:
            raise self._table.refused(error) from None

    async def aclose(self) -> None:
        """Nothing is held that ends not by itself."""

    def _search(self, query: str, k: int) -> Found:
        """LanceDB leaves open which of several with one score come first: all with the last one's are asked for."""
        wanted = k + _MORE
        while k:
            rows = self._best(query, wanted)
            if len(rows) < wanted or rows[k - 1]["_score"] > rows[-1]["_score"]:
                found = [self._scored(row) for row in rows]
                return sorted(found, key=lambda one: (-one.score, one.passage.id))[:k]
            wanted *= 4
        return []

    def _best(self, query: str, count: int) -> list[Mapping[str, Any]]:
        from lancedb.query import MatchQuery

        asked = MatchQuery(query, self._table.words or self._table.text)
        search = self._lance.search(asked, query_type="fts").select([*self._table.columns, "_score"])
        rows: list[Mapping[str, Any]] = search.limit(count).to_list()
        return rows

    def _scored(self, row: Mapping[str, Any]) -> ScoredPassage:
        table = self._table
        title = row[table.title] if table.title else ""
        passage = Passage(f"{table.prefix}{row[table.id]}", str(row[table.text] or ""), str(title or ""))
        return ScoredPassage(passage, float(row["_score"]))


def opened(argument: str) -> Retriever:
    """Raises IndexUnavailable where there is no such table, or it lacks a column; MissingDependency without lancedb."""
    return Merged([ByWords(table) for table in tables(argument)], f"lancedb:{argument}", comparable=False)


def fingerprint(argument: str) -> str:
    """Of tables that we built; empty where one of them was made by others."""
    contents = [_content(table) for table in tables(argument)]
    return "+".join(contents) if all(contents) else ""


def _content(table: Table) -> str:
    return str(read_notes(_connected(table), table).get("content", ""))


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
    lacking = [name for name in {*table.columns, table.words or table.text} if name not in schema.names]
    if lacking:
        raise IndexUnavailable(
            f"{table.name}: got no column {', '.join(sorted(lacking))}; there are {', '.join(schema.names)}. Say in a file, "
            'lancedb:FILE.toml, what they are called: id, title, text, and words, the one that is searched ("" for the text).'
        )
    return lance

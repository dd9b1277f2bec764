"""Searching tables of PostgreSQL by words (``ts_rank``), by vectors (pgvector), or by both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.servers.postgres.server import Server, checked, read_notes
from gnothi.retrieval.servers.postgres.table import TERMS, Table, tables, values
from gnothi.retrieval.servers.searching import Found, Merged, ServerPart, all_contents, check_weights, searcher
from gnothi.types import NO_METADATA, Metadata, Passage, ScoredPassage, encodable

_MOST = 2**31 - 1


class ByWords(ServerPart[Server]):
    """Passages that hold any word of the query, ranked by ``ts_rank`` over the length of the passage: it counts how often
    and where words occur, not how rare they are."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        asked, ours = encodable(query).replace("\0", " "), await _ours(self._server, filters)
        sql = self._server.table.by_words(ours, filters)
        rows = await self._server.rows(sql, (asked, *values(filters), min(k, _MOST)))
        return [_scored(row, row[3], self._server.table) for row in rows]


class ByVectors(ServerPart[Server]):
    """Passages whose vectors are near that of the query."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Found:
        vector, ours = await self.vector(query), await _ours(self._server, filters)
        sql = self._server.table.by_vectors(ours, filters)
        rows = await self._server.rows(sql, (as_vector(vector), *values(filters), min(k, _MOST)))
        return [_scored(row, -row[3], self._server.table) for row in rows]


def opened(argument: str) -> Retriever:
    """Raises IndexUnavailable where a server cannot be reached or lacks the table, unless it is optional."""
    found, name = tables(argument), f"postgres:{argument}"
    servers = [Server(table) for table in found]
    alike = len({table.language for table in found}) == 1
    return searcher(
        found,
        name,
        _check,
        lambda: Merged([ByWords(server) for server in servers], name, alike),
        lambda made: [ByVectors(server, made[server.table.encoder]) for server in servers],
    )


def fingerprint(argument: str) -> str:
    """Of tables that we built; empty where one of them was made by others, or does not answer and need not."""
    return all_contents(map(_content, tables(argument)))


def _content(table: Table) -> str:
    found: dict[str, str] = {}
    _checked(table, lambda connection: found.update(read_notes(connection, table)))
    return found.get("content", "")


def as_vector(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _check(table: Table) -> None:
    """The columns are there and can be searched, and vectors are those of the encoder."""
    notes: dict[str, str] = {}

    def look(connection: Any) -> None:
        if table.by != "vectors":
            connection.execute(table.by_words(), ("", 1))
        if table.by != "words":
            connection.execute(table.sql("SELECT {vectors} FROM {table} LIMIT 0"), ())
            notes.update(read_notes(connection, table))

    _checked(table, look)
    check_weights(notes, table.name, table.encoder)


def _checked(table: Table, look: Callable[[Any], None]) -> None:
    try:
        checked(table, look)
    except IndexUnavailable:
        if not table.optional:  # each search says that it lacks it
            raise


def _scored(row: tuple[Any, ...], score: float, table: Table) -> ScoredPassage:
    key, title, text = row[:3]
    return ScoredPassage(Passage(f"{table.prefix}{key}", text, title, from_jsonb(row[4])), float(score))


def from_jsonb(stored: Mapping[str, Any] | None) -> Metadata:
    """A large whole number was not one: PostgreSQL writes 1e20 out."""
    found = {key: float(one) if isinstance(one, int) and abs(one) >= 2**63 else one for key, one in (stored or {}).items()}
    return Metadata(found) if found else NO_METADATA


async def _ours(server: Server, filters: Filters) -> bool:
    """Whether metadata are kept; raises InvalidSetting where they are not and there are filters."""
    ours = await server.ours()
    if filters and not ours:
        raise cannot(server.table.name, f"column {TERMS}")
    return ours

"""What we note beside a table that we built."""

from __future__ import annotations

from typing import Any

from gnothi.retrieval.servers.postgres.table import Table

NOTES, SOURCES = "_gnothi", "_gnothi_sources"


def read_notes(connection: Any, table: Table) -> dict[str, str]:
    """By name; nothing for a table of others. ``content`` changes with the passages, ``encoder`` is the fingerprint of the
    weights that made the vectors."""
    if not exists(connection, table.parts(NOTES)):
        return {}
    return dict(connection.execute(table.sql("SELECT name, value FROM {notes}", notes=table.beside(NOTES)), ()).fetchall())


def exists(connection: Any, parts: tuple[str, ...]) -> bool:
    from psycopg import sql

    row = connection.execute("SELECT to_regclass(%s)", (sql.Identifier(*parts).as_string(connection),)).fetchone()
    return row is not None and row[0] is not None

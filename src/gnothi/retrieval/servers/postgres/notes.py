"""What we note beside a table that we built."""

from __future__ import annotations

from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.dense.encoders import Encoding
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


def check_weights(notes: dict[str, str], table: Table) -> None:
    """Raises IndexUnavailable where the table's vectors were made by other weights than its encoder has now."""
    made, now = notes.get("encoder", ""), Encoding(table.encoder).fingerprint()
    if made and now and made != now:
        raise IndexUnavailable(
            f"the vectors of {table.name} were made by other weights than {table.encoder!r} has now (fingerprints {made[:12]} "
            f"and {now[:12]}): they cannot be compared. Put the earlier weights back, or build another table."
        )

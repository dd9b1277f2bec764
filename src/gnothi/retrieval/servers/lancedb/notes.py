"""What we note beside a table that we built, in tables of its own: the content (``TABLE_gnothi``), the sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gnothi.retrieval.ledger import Entry, Ledger, as_row, from_row
from gnothi.retrieval.servers.lancedb.table import ERRORS, Table

NOTES, SOURCES = "_gnothi", "_gnothi_sources"


def read_notes(database: Any, table: Table) -> dict[str, Any]:
    """Nothing for a table of others. ``content`` changes with the passages, ``begun`` are the origins whose passages may be
    there although no source tells of them."""
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
    """Sources as rows. What changes is kept here until ``save``."""

    def __init__(self, database: Any, table: Table) -> None:
        import pyarrow

        texts = [pyarrow.field(name, pyarrow.string()) for name in ("key", "path", "entry")]
        schema = pyarrow.schema([*texts, pyarrow.field("origins", pyarrow.list_(pyarrow.string()))])
        self._sources = database.create_table(table.table + SOURCES, schema=schema, exist_ok=True)
        self._schema = schema
        self._changed: dict[str, Entry] = {}

    def by_path(self, path: str) -> Entry | None:
        changed = next((entry for entry in self._changed.values() if entry.path == path), None)
        found = changed or self._one(f"path = {literal(path)}")
        return found if changed or found is None or found.key not in self._changed else None

    def by_key(self, key: str) -> Entry | None:
        return self._changed[key] if key in self._changed else self._one(f"key = {literal(key)}")

    def knows(self, origin: str) -> bool:
        """Whether a source's passages carry it."""
        return self._one(f"array_has(origins, {literal(origin)})") is not None

    def put(self, entry: Entry) -> None:
        self._changed[entry.key] = entry

    def save(self) -> None:
        rows = [
            {"key": one.key, "path": one.path, "entry": json.dumps(as_row(one)), "origins": [one.origin, *one.stale]}
            for one in self._changed.values()
        ]
        if rows:
            import pyarrow

            merge(self._sources, "key", pyarrow.Table.from_pylist(rows, schema=self._schema))
        self._changed.clear()

    def close(self) -> None:
        """A folder of LanceDB's is never held open."""

    def _one(self, condition: str) -> Entry | None:
        rows = self._sources.search().where(condition).limit(1).to_list()
        return from_row(json.loads(rows[0]["entry"])) if rows else None


def merge(lance: Any, key: str, rows: Any) -> None:
    """All of them at once: each takes the place of that with the same ``key``."""
    lance.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def literal(text: str) -> str:
    """A text in a condition."""
    return "'" + text.replace("'", "''") + "'"

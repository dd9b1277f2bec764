"""What we note beside a table that we built, in tables of its own: the content (``TABLE_gnothi``), the sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gnothi.retrieval.ledger import Entry, Ledger, as_row, earlier
from gnothi.retrieval.servers.lancedb.table import ERRORS, Table

NOTES, SOURCES = "_gnothi", "_gnothi_sources"
ANEW = "gnothi index build SOURCE... --to lancedb:FOLDER#ANOTHER"
_AT_ONCE = 500


def read_notes(database: Any, table: Table) -> dict[str, Any]:
    """Nothing for a table of others. ``content`` changes with the passages, ``begun`` are the origins whose passages may be
    there although no source tells of them, ``lost`` those that have lost some, which no source may know."""
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
    """Sources as rows."""

    def __init__(self, database: Any, table: Table, notes: dict[str, Any]) -> None:
        import pyarrow

        self._database, self._table, self.notes = database, table, notes
        self._schema = pyarrow.schema([pyarrow.field(name, pyarrow.string()) for name in ("key", "entry")])
        self._sources = database.create_table(table.table + SOURCES, schema=self._schema, exist_ok=True)
        if set(self._sources.schema.names) != {"key", "entry"}:
            raise earlier(table.name, ANEW)
        super().__init__(rows=(json.loads(row["entry"]) for row in self._sources.search().limit(None).to_list()))
        self.recover(notes["begun"], notes.get("lost", ()))

    def note(self, **changes: Any) -> None:
        self.notes |= changes
        write_notes(self._database, self._table, self.notes)

    def save(self) -> None:
        super().save()
        if self.notes["begun"] != self.orphans or self.notes.get("lost"):
            self.note(begun=self.orphans, lost=[])

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        import pyarrow

        if changed:
            rows = [{"key": one.key, "entry": json.dumps(as_row(one))} for one in changed]
            merge(self._sources, "key", pyarrow.Table.from_pylist(rows, schema=self._schema))
        for start in range(0, len(removed), _AT_ONCE):
            self._sources.delete(f"key IN ({', '.join(map(literal, removed[start : start + _AT_ONCE]))})")


def merge(lance: Any, key: str, rows: Any) -> None:
    """All of them at once: each takes the place of that with the same ``key``."""
    lance.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def literal(text: str) -> str:
    """A text in a condition."""
    return "'" + text.replace("'", "''") + "'"

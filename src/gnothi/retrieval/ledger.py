"""Which sources an index holds, and how far the reading of each has come. A note for the next build, never needed to search.

It lives beside the index and is saved right after each commit of the index. Between the two it is behind, never ahead: what it
misses is read again, and passages that stand in the index already are recognised there.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.folder import disk_errors
from gnothi.retrieval.ingest.base import START, Checkpoint
from gnothi.retrieval.ingest.discover import Found

FILE = "gnothi-sources.sqlite"
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)  # the last: its table has other columns
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sources (
    key TEXT PRIMARY KEY, path TEXT NOT NULL, stamp TEXT NOT NULL, origin TEXT NOT NULL, stale TEXT NOT NULL,
    offset INTEGER NOT NULL, line INTEGER NOT NULL, invalid INTEGER NOT NULL, empty INTEGER NOT NULL, complete INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_path ON sources (path);
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One source. ``stamp`` is the version of the file (and of the settings) that was read, ``origin`` the mark its passages
    carry in the index, ``stale`` the marks of versions before it whose passages go when this one is complete."""

    key: str
    path: str
    stamp: str
    origin: str
    stale: tuple[str, ...] = ()
    checkpoint: Checkpoint = START
    invalid: int = 0
    empty: int = 0
    complete: bool = False

    def renewed(self, stamp: str, origin: str) -> Entry:
        """The entry for a new version of the file."""
        return Entry(self.key, self.path, stamp, origin, stale=(*self.stale, self.origin))


def plain(path: Path | str) -> str:
    """A path as text that can be stored and printed; bytes of its name that are no text are written out."""
    return str(path).encode("utf-8", "backslashreplace").decode()


class Ledger(ABC):
    """Use only while holding the index's writer lock. Changes are kept by ``save`` or lost together."""

    @abstractmethod
    def by_path(self, path: str) -> Entry | None: ...

    @abstractmethod
    def by_key(self, key: str) -> Entry | None: ...

    @abstractmethod
    def put(self, entry: Entry) -> None: ...

    @abstractmethod
    def save(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Changes since the last ``save`` are dropped."""

    def entry(self, found: Found, settings: str) -> Entry:
        """How far the reading of a file has come in this version of it, under these ``settings``."""
        key, path = self.key_for(found), plain(found.path)
        stamp = f"{found.stamp}:{settings}"
        origin = hashlib.blake2b(f"{key}\n{stamp}".encode(), digest_size=8).hexdigest()
        known = self.by_key(key)
        if known is None:
            return Entry(key, path, stamp, origin)
        if known.path != path:
            known = replace(known, path=path)
            self.put(known)
        return known if known.stamp == stamp else known.renewed(stamp, origin)

    def key_for(self, found: Found) -> str:
        """The stable name of a file: as known from an earlier build, else the shortest end of its path that no other file has.

        A name whose file is gone is taken over: the file was moved.
        """
        path = plain(found.path)
        if known := self.by_path(path):
            return known.key
        parts = found.path.parts[1:]
        shortest = 1 if found.named else len(found.path.parts) - len(found.root.parts) + 1
        for length in range(min(shortest, len(parts)), len(parts) + 1):
            key = plain("/".join(parts[-length:]))
            other = self.by_key(key)
            if other is None or not Path(other.path).exists():
                return key
        return path


class FolderLedger(Ledger):
    """A SQLite file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._errors():
            self._db = sqlite3.connect(folder / FILE, isolation_level=None)
            self._db.executescript(_SCHEMA)
            self._db.execute("BEGIN IMMEDIATE")

    def by_path(self, path: str) -> Entry | None:
        return self._one("SELECT * FROM sources WHERE path = ?", path)

    def by_key(self, key: str) -> Entry | None:
        return self._one("SELECT * FROM sources WHERE key = ?", key)

    def entries(self) -> list[Entry]:
        """Every source, in order of their names."""
        with self._errors():
            keys = [str(key) for (key,) in self._db.execute("SELECT key FROM sources ORDER BY key")]
        return [entry for key in keys if (entry := self.by_key(key))]

    def put(self, entry: Entry) -> None:
        with self._errors():
            self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", as_row(entry))

    def save(self) -> None:
        with self._errors():
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        self._db.close()

    def _one(self, sql: str, value: str) -> Entry | None:
        with self._errors():
            row = self._db.execute(sql, (value,)).fetchone()
            return None if row is None else from_row(row)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with disk_errors(self._folder):
                yield
        except IndexUnavailable as error:
            if getattr(error.__cause__, "sqlite_errorcode", None) not in _DAMAGED and not isinstance(
                error.__cause__, ValueError
            ):
                raise
            raise IndexUnavailable(
                f"{self._folder / FILE}, which notes what files were read, is damaged: {error.__cause__}. Delete it and run "
                "the same command again: the files are read once more, and what stands in the folder already is recognised."
            ) from error.__cause__


def as_row(entry: Entry) -> tuple[str | int | bool, ...]:
    """In the order of the columns of a table of sources."""
    return (
        entry.key, entry.path, entry.stamp, entry.origin, json.dumps(entry.stale),
        entry.checkpoint.offset, entry.checkpoint.line, entry.invalid, entry.empty, entry.complete,
    )  # fmt: skip


def from_row(row: Sequence[Any]) -> Entry:
    """The inverse of ``as_row``. Raises ValueError for what it did not write."""
    key, path, stamp, origin, kept, offset, line, invalid, empty, complete = row
    stale: Any = json.loads(kept) if isinstance(kept, str) else None
    texts = isinstance(stale, list) and all(isinstance(one, str) for one in (key, path, origin, *stale))
    if not texts or not all(isinstance(one, int) for one in (offset, line, invalid, empty)):
        raise ValueError("a row holds values of the wrong kinds")
    return Entry(key, path, stamp, origin, tuple(stale), Checkpoint(offset, line), invalid, empty, bool(complete))

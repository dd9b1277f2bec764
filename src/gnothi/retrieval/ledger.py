"""Which sources an index holds, and how far the reading of each has come. A note for the next build, never needed to search.

It lives beside the index and is saved right after each commit of the index. Between the two it is behind, never ahead: what it
misses is read again, and passages that stand in the index already are recognised there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.folder import disk_errors, read_begun, write_begun
from gnothi.retrieval.ingest.base import START, Checkpoint
from gnothi.retrieval.ingest.discover import SourceFile

FILE = "gnothi-sources.sqlite"
_VERSION = 2
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)  # the last: its table has other columns
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS sources (
    key TEXT PRIMARY KEY, path TEXT NOT NULL, root TEXT NOT NULL, stamp TEXT NOT NULL, settings TEXT NOT NULL,
    digest TEXT NOT NULL, inode TEXT NOT NULL, origin TEXT NOT NULL, stale TEXT NOT NULL, shares TEXT NOT NULL,
    offset INTEGER NOT NULL, line INTEGER NOT NULL, passages INTEGER NOT NULL, invalid INTEGER NOT NULL,
    empty INTEGER NOT NULL, read INTEGER NOT NULL, complete INTEGER NOT NULL, again INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_path ON sources (path);
CREATE INDEX IF NOT EXISTS by_origin ON sources (origin);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_SEEN = "CREATE TEMP TABLE seen (path TEXT PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID"
_COLUMNS = 18
_YOUNG_SECONDS = 2.0
"""A file that changed less long ago may change again without showing it: clocks of file systems are as coarse as that."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One source. ``root`` is the named source it was found below, ``stamp`` the file's state, ``settings`` those of the
    build and ``digest`` the content that was read; ``origin`` is the mark its passages carry in the index, ``stale`` the marks
    of versions before it whose passages go when this one is complete, ``shares`` the keys of sources with passages of the same
    ids. ``passages`` counts those read, ``read`` is when (seconds since 1970). ``again``: it is to be read once more, since
    another source had taken the place of some of its passages."""

    key: str
    path: str
    root: str
    stamp: str
    settings: str
    digest: str
    inode: str
    origin: str
    stale: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    checkpoint: Checkpoint = START
    passages: int = 0
    invalid: int = 0
    empty: int = 0
    read: int = 0
    complete: bool = False
    again: bool = False

    def at(self, path: str, root: str) -> Entry:
        return replace(self, path=path, root=root)

    def to_read_again(self) -> Entry:
        return replace(self, again=True)

    def once_more(self) -> Entry:
        return replace(self, checkpoint=START, passages=0, invalid=0, empty=0)


def plain(path: Path | str) -> str:
    """A path as text that can be stored and printed; bytes of its name that are no text are written out."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def from_plain(text: str) -> Path:
    """The file of which ``plain`` wrote the path."""
    if not os.path.lexists(text):
        text = re.sub(r"\\u(dc[89a-f][0-9a-f])", lambda match: chr(int(match[1], 16)), text)
    return Path(text)


def is_gone(text: str) -> bool:
    """Whether there is surely nothing at a path written by ``plain``: not where its folder cannot be looked into."""
    try:
        os.lstat(from_plain(text))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def is_below(path: str, folder: str) -> bool:
    """Whether it is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Ledger:
    """Use only while holding the index's writer lock. Changes are kept by ``save`` or lost together.

    It works on a database of SQLite: the one in an index's folder or, for an index elsewhere, a passing copy of the rows there.
    """

    def __init__(
        self, database: sqlite3.Connection | None = None, rows: Iterable[Sequence[Any]] = (), writes: bool = True
    ) -> None:
        """``rows`` as ``as_row`` makes them. Raises ValueError for others."""
        with self._errors():
            self._db = database or sqlite3.connect("", isolation_level=None)  # on the disk where it is large
            if writes:
                self._db.executescript(_SCHEMA)
                self._db.execute(_SEEN)
                self._db.execute("BEGIN IMMEDIATE")
            for row in rows:
                self._put(from_row(row))
        self._changed: set[str] = set()
        self.orphans: list[str] = []  # origins that a killed build may have left in the index, until they were looked at
        self._places = 0

    # --- what is known ----------------------------------------------------------------------------------------------

    def by_path(self, path: str) -> Entry | None:
        return next(self._entries("path = ?", path), None)

    def by_key(self, key: str) -> Entry | None:
        return next(self._entries("key = ?", key), None)

    def by_origin(self, origin: str) -> Entry | None:
        """The source whose passages carry it, in this version or one before."""
        known = next(self._entries("origin = ?", origin), None)
        return known or next(self._entries("stale LIKE ?", f'%"{origin}"%'), None)

    def entries(self) -> Iterator[Entry]:
        """Every source, in order of their names."""
        return self._entries("1 ORDER BY key")

    def below(self, folder: str) -> Iterator[Entry]:
        return self._entries(*_below("path", folder))

    def roots(self) -> dict[str, int]:
        """Named sources, each with how many files were found below it."""
        with self._errors():
            return dict(self._db.execute("SELECT root, count(*) FROM sources GROUP BY root").fetchall())

    # --- what changes -----------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> None:
        with self._errors():
            self._put(entry)
        self._changed.add(entry.key)

    def remove(self, key: str) -> None:
        with self._errors():
            self._db.execute("DELETE FROM sources WHERE key = ?", (key,))
        self._changed.add(key)

    def save(self) -> None:
        self.flush()
        with self._errors():
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

    def flush(self) -> None:
        """Hand on what has changed; where passages are stored in the same transaction it is kept together with them."""
        if self._changed:
            there = [entry for key in sorted(self._changed) if (entry := self.by_key(key))]
            self._push(there, sorted(self._changed - {entry.key for entry in there}))
        self._changed.clear()

    def close(self) -> None:
        """Changes since the last ``save`` are dropped."""
        self._db.close()

    def recover(self, begun: Iterable[str], lost: Iterable[str]) -> None:
        """What the index did in commits that this does not know of: origins whose passages came, and those that lost some."""
        self.orphans = list(begun)
        for entry in list(filter(None, map(self.by_origin, lost))):
            self.put(entry.to_read_again())

    def forgotten(self) -> list[str]:
        """Of the orphans those of no source, whose passages are to be deleted now."""
        origins, self.orphans = [one for one in self.orphans if self.by_origin(one) is None], []
        return origins

    def _push(self, changed: list[Entry], removed: list[str]) -> None:
        """Write to where the rows came from."""

    # --- what this build has met ------------------------------------------------------------------------------------

    def see(self, path: str) -> bool:
        """Note that a file is there; False where it was noted before."""
        with self._errors():
            self._places += 1
            return self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (path, self._places)).rowcount > 0

    def place(self, path: str) -> int:
        """When it was seen; 0 for never."""
        with self._errors():
            row = self._db.execute("SELECT place FROM seen WHERE path = ?", (path,)).fetchone()
        return row[0] if row else 0

    def sees_below(self, folder: str) -> bool:
        with self._errors():
            condition, *values = _below("path", folder)
            return self._db.execute(f"SELECT 1 FROM seen WHERE {condition} LIMIT 1", values).fetchone() is not None

    def unseen(self, folder: str) -> Iterator[Entry]:
        condition, *values = _below("path", folder)
        return self._entries(f"({condition}) AND path NOT IN (SELECT path FROM seen)", *values)

    def moved(self) -> Iterator[Entry]:
        """Sources that were not met, but another one that is the same file with the same content."""
        other = (
            "SELECT 1 FROM sources AS new JOIN seen ON new.path = seen.path "
            "WHERE new.inode = sources.inode AND new.digest = sources.digest"
        )
        return self._entries(f"digest != '' AND path NOT IN (SELECT path FROM seen) AND EXISTS ({other})")

    # --- one source -------------------------------------------------------------------------------------------------

    def entry(self, source: SourceFile, root: Path, settings: str, takes: Sequence[str]) -> Entry:
        """How far the reading of a file has come in this version of it, under these ``settings``. A file that was moved takes
        the name of one that is gone from the folders ``takes``. Raises OSError for a file that cannot be read."""
        path, below = plain(source.path), plain(root)
        known = self.by_path(path)
        key, known = (known.key, known) if known else self._taken(source, root, takes)
        if known:
            inside = is_below(path, known.root) and not is_below(known.root, below)  # the outermost of several counts
            if (known.path, known.root) != (path, known.root if inside else below):
                self.put(known := replace(known, path=path, root=known.root if inside else below))
            if (known.stamp, known.settings) == (source.stamp, settings):
                return known
        young = time.time() - source.changed_ns / 1e9 < _YOUNG_SECONDS
        stamp = f"{source.stamp}?" if young else source.stamp
        with source.path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        if known and (known.digest, known.settings) == (digest, settings):
            self.put(known := replace(known, stamp=stamp, inode=source.inode))
            return known
        origin = hashlib.blake2b(f"{key}\n{source.stamp}:{settings}".encode(), digest_size=8).hexdigest()
        fresh = Entry(key, path, known.root if known else below, stamp, settings, digest, source.inode, origin)
        if known is None:
            return fresh
        stale = tuple(one for one in dict.fromkeys((*known.stale, known.origin)) if one != origin)
        return replace(fresh, stale=stale, shares=known.shares)

    def _taken(self, source: SourceFile, root: Path, takes: Sequence[str]) -> tuple[str, Entry | None]:
        """The shortest end of the file's path that no other file has; with what is known of the one that had it and is gone."""
        parts = source.path.parts[1:]
        shortest = len(source.path.parts) - len(root.parts) + 1
        for length in range(min(shortest, len(parts)), len(parts) + 1):
            key = plain("/".join(parts[-length:]))
            other = self.by_key(key)
            if other is None:
                return key, None
            if is_gone(other.path) and (
                any(is_below(other.path, one) for one in takes)
                or (other.inode == source.inode and other.stamp.startswith(f"{source.content_stamp}:"))
            ):
                return key, other
        return plain(source.path), None

    def _put(self, entry: Entry) -> None:
        self._db.execute(f"INSERT OR REPLACE INTO sources VALUES ({', '.join('?' * _COLUMNS)})", as_row(entry))

    def _entries(self, condition: str, *values: Any) -> Iterator[Entry]:
        with self._errors():
            rows = self._db.execute(f"SELECT * FROM sources WHERE {condition}", values)
            # Fetched in pieces; what is put meanwhile may be among them.
            while some := rows.fetchmany(1000):
                yield from map(from_row, some)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        yield


class FolderLedger(Ledger):
    """A SQLite file in a folder."""

    def __init__(self, folder: Path, writes: bool = True) -> None:
        """``writes`` False reads while a build may be under way; what it has not saved yet is not seen."""
        self._folder = folder
        self._begun: Path | None = None
        with self._errors():
            file = (folder / FILE).absolute().as_uri() + ("" if writes else "?mode=ro")
            database = sqlite3.connect(file, uri=True, isolation_level=None)
        try:
            with self._errors():
                (there,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sources'").fetchone()
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if there and version != _VERSION:
                    raise earlier(folder, f"gnothi index build SOURCE... --out {folder}-new")
            super().__init__(database, writes=writes)
        except BaseException:
            database.close()
            raise

    def flush(self) -> None:
        """The database is where the rows belong."""
        self._changed.clear()

    def recover_from(self, begun: Path) -> None:
        """``recover`` from the file ``begun``. ``save`` leaves the orphans in it."""
        with self._errors():
            saved = read_begun(begun)
        self._begun = begun
        self.recover(*saved)

    def save(self) -> None:
        super().save()
        if self._begun and self.orphans:
            write_begun(self._begun, self.orphans, ())
        elif self._begun:
            self._begun.unlink(missing_ok=True)

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


def earlier(name: object, command: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"{name} was built by an earlier version of Gnothi, which noted the files that it read in another way. Build it again "
        f"into a new one with `{command}`."
    )


def as_row(entry: Entry) -> tuple[str | int | bool, ...]:
    """In the order of the columns of a table of sources."""
    return (
        entry.key, entry.path, entry.root, entry.stamp, entry.settings, entry.digest, entry.inode, entry.origin,
        json.dumps(entry.stale), json.dumps(entry.shares), entry.checkpoint.offset, entry.checkpoint.line, entry.passages,
        entry.invalid, entry.empty, entry.read, entry.complete, entry.again,
    )  # fmt: skip


def from_row(row: Sequence[Any]) -> Entry:
    """The inverse of ``as_row``. Raises ValueError for what it did not write."""
    *names, stale, shares, offset, line, passages, invalid, empty, read, complete, again = row
    numbers = (offset, line, passages, invalid, empty, read, complete, again)
    lists: list[Any] = [json.loads(one) if isinstance(one, str) else None for one in (stale, shares)]
    texts = all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in [names, *lists])
    if len(row) != _COLUMNS or not texts or not all(isinstance(one, int) for one in numbers):
        raise ValueError("a row holds values of the wrong kinds")
    key, path, root, stamp, settings, digest, inode, origin = names
    old, shared = map(tuple, lists)
    progress = (Checkpoint(offset, line), passages, invalid, empty, read, bool(complete), bool(again))
    return Entry(key, path, root, stamp, settings, digest, inode, origin, old, shared, *progress)


def _below(column: str, folder: str) -> tuple[str, str, str, str]:
    """A condition with its values. The letter after the slash ends the range of what begins with it."""
    inside = folder.rstrip("/")
    return f"{column} = ? OR ({column} > ? AND {column} < ?)", folder, inside + "/", inside + "0"

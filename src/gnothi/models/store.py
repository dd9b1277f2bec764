"""A bounded store of bytes by key on disk, for any number of processes: SQLite in WAL mode.

What goes wrong with it never reaches the caller: a damaged file is put aside and a new one begun, and where nothing can be
written the store keeps nothing. ``say`` tells either in a sentence.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gnothi.errors import InvalidSetting
from gnothi.files import DATABASE_ERRORS, home_expanded

T = TypeVar("T")

FILE = "calls.sqlite"
ASIDE = "calls.damaged.sqlite"
FOLDER_VARIABLE = "GNOTHI_CACHE"
VERSION = 1
LOCK_SECONDS = 30.0
LOOK_EVERY = 100
"""Entries written between two looks at the size that all processes together have reached."""
KEEP = 0.9
"""Share of the limit that eviction leaves."""
DIGEST_BYTES = 8
ENTRY_BYTES = 100
"""What the database needs for an entry beside its key and value."""


def folder() -> Path:
    """``GNOTHI_CACHE``, else ``gnothi`` in the place where this system keeps caches."""
    from platformdirs import user_cache_path

    if named := os.environ.get(FOLDER_VARIABLE, "").strip():
        return home_expanded(named)
    with contextlib.suppress(RuntimeError):  # without a home; earlier versions of platformdirs leave the ~
        path = user_cache_path("gnothi", appauthor=False)
        if path.parts[0] != "~":
            return path
    raise InvalidSetting(
        f"there is no folder for kept replies of models: this user has no home folder. Name one by "
        f"{FOLDER_VARIABLE}=FOLDER, or keep none (<--no-cache>)."
    )


@dataclass(frozen=True, slots=True)
class Info:
    """``entries`` and the ``bytes`` they take; ``oldest`` is when the least recently used one was last used (seconds since
    the epoch, None when there is none)."""

    path: Path
    entries: int
    bytes: int
    oldest: float | None


class Store:
    """Opened lazily. Calls come from any thread, one at a time; a key is some bytes."""

    def __init__(self, path: Path, limit: int, say: Callable[[str], None]) -> None:
        """``path`` is the folder, ``limit`` how many bytes all entries may take."""
        self.path = path
        self._limit = limit
        self._say = say
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._broken = False
        self._touched: dict[bytes, float] = {}
        self._unlooked = LOOK_EVERY
        self._last = 0.0

    def get(self, key: bytes) -> bytes | None:
        """The value kept under ``key``, which counts as a use of it."""

        def read(database: sqlite3.Connection) -> bytes | None:
            row = database.execute("SELECT value FROM calls WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            self._touched[key] = self._now()
            if len(self._touched) >= LOOK_EVERY:
                self._touch(database)
            return _checked(key, row[0]) if isinstance(row[0], bytes) else None

        return self._do(read, None)

    def put(self, key: bytes, value: bytes) -> None:
        """Keep ``value``; what was used longest ago goes where the limit is reached. A value over the limit is not kept."""
        size = len(key) + len(value) + ENTRY_BYTES
        if size > self._limit:
            return

        def write(database: sqlite3.Connection) -> None:
            with database:
                row = (key, _digest(key, value) + value, size, self._now())
                database.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", row)
            self._unlooked += 1
            if self._unlooked >= LOOK_EVERY or size * LOOK_EVERY > self._limit:
                self._unlooked = 0
                self._touch(database)
                self._evict(database)

        self._do(write, None)

    def info(self) -> Info:
        def read(database: sqlite3.Connection) -> Info:
            count, total, oldest = database.execute(
                "SELECT COUNT(*), CAST(TOTAL(size) AS INTEGER), CAST(MIN(used) AS REAL) FROM calls"
            ).fetchone()
            return Info(self.path, count, total, oldest)

        nothing = Info(self.path, 0, 0, None)
        return self._do(read, nothing) if (self.path / FILE).exists() else nothing

    def clear(self) -> Info:
        """Forget everything, that which was put aside included; returns what there was."""
        before = self.info()

        def delete(database: sqlite3.Connection) -> None:
            with database:
                database.execute("DELETE FROM calls")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        if (self.path / FILE).exists():
            self._do(delete, None)
        with contextlib.suppress(OSError):
            (self.path / ASIDE).unlink(missing_ok=True)
        return before

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            if self._database is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._touch(self._database)
                with contextlib.suppress(sqlite3.Error):
                    self._database.close()
                self._database = None

    # --- inside ------------------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """``work`` on the open database, once more on a new one where it is damaged; ``otherwise`` where that fails."""
        with self._lock:
            for last in (False, True):
                if self._broken:
                    return otherwise
                try:
                    if self._database is None:
                        self._database = _open(self.path)
                    return work(self._database)
                except (*DATABASE_ERRORS, OSError) as error:
                    if "locked" in str(error):
                        return otherwise  # another process is at it for very long: this entry is done without
                    if last or not _damaged(error) or not self._put_aside(error):
                        self._give_up(error)
            return otherwise

    def _put_aside(self, error: Exception) -> bool:
        self._forget_connection()
        try:
            with _exclusive(self.path):
                if not _reads_well(self.path):  # another process may have been here first
                    (self.path / FILE).replace(self.path / ASIDE)
                    for companion in ("-wal", "-shm"):
                        (self.path / f"{FILE}{companion}").unlink(missing_ok=True)
                    self._say(
                        f"the cache of model calls in {self.path} is damaged ({error}); a new one is begun, the old file is "
                        f"kept as {ASIDE}."
                    )
        except OSError:
            return False
        return True

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        self._forget_connection()
        self._say(f"the cache of model calls in {self.path} cannot be used ({error}); going on without it.")

    def _forget_connection(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
        self._database = None

    def _now(self) -> float:
        """Later than at any call before: uses keep their order on a coarse clock."""
        self._last = max(time.time(), self._last + 1e-6)
        return self._last

    def _touch(self, database: sqlite3.Connection) -> None:
        touched, self._touched = self._touched, {}
        with database:
            database.executemany("UPDATE calls SET used = ? WHERE key = ?", [(used, key) for key, used in touched.items()])

    def _evict(self, database: sqlite3.Connection) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            (total,) = database.execute("SELECT TOTAL(size) FROM calls").fetchone()
            if total <= self._limit:
                return
            excess = total - KEEP * self._limit
            doomed = []
            for key, size in database.execute("SELECT key, CAST(size AS REAL) FROM calls ORDER BY used"):
                if excess <= 0:
                    break
                doomed.append((key,))
                excess -= size
            database.executemany("DELETE FROM calls WHERE key = ?", doomed)
        database.execute("PRAGMA incremental_vacuum").fetchall()


def _digest(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key[:64], digest_size=DIGEST_BYTES).digest()


def _checked(key: bytes, stored: bytes) -> bytes | None:
    """The value, unless it is not what was kept under this key: a file may be damaged where SQLite does not notice."""
    digest, value = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    return value if digest == _digest(key, value) else None


def _open(path: Path) -> sqlite3.Connection:
    path.mkdir(parents=True, exist_ok=True)
    with _exclusive(path):
        database = sqlite3.connect(path / FILE, timeout=LOCK_SECONDS, check_same_thread=False)
        try:
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            database.execute("PRAGMA journal_mode = WAL")
            # A power cut may cost the last entries, never the file's soundness.
            database.execute("PRAGMA synchronous = NORMAL")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            with database:
                if version != VERSION:
                    database.execute("DROP TABLE IF EXISTS calls")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS calls (key BLOB PRIMARY KEY, value BLOB NOT NULL, size INTEGER NOT NULL, "
                    "used REAL NOT NULL)"
                )
                database.execute("CREATE INDEX IF NOT EXISTS by_use ON calls (used)")
                database.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            database.close()
            raise
    return database


def _reads_well(path: Path) -> bool:
    try:
        database = sqlite3.connect(path / FILE, timeout=LOCK_SECONDS)
        try:
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
            database.execute("SELECT key, value, size, used FROM calls").fetchone()
        finally:
            database.close()
    except DATABASE_ERRORS:
        return False
    return bool(verdict == "ok")


def _damaged(error: Exception) -> bool:
    """Whether the file is at fault, not the disk, a permission or another process that holds it for long."""
    if isinstance(error, sqlite3.OperationalError):
        return "no such table" in str(error) or "malformed" in str(error) or "no such column" in str(error)
    return isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError)


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Opening and replacing the file exclude each other between processes, as far as the system has such locks."""
    from filelock import FileLock

    lock = FileLock(path / ".lock")
    with contextlib.suppress(OSError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()

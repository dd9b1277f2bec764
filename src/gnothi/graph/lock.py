"""One build at a time in a folder, whatever becomes of the process that holds it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gnothi.errors import IndexUnavailable

_FILE = "lock.sqlite"


@contextmanager
def locked(folder: Path, graph: Path) -> Iterator[None]:
    """Raises IndexUnavailable when another process holds the lock. The system frees it when a process ends, however it ends."""
    with closing(sqlite3.connect(folder / _FILE, timeout=0, isolation_level=None)) as database:
        try:
            database.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise IndexUnavailable(
                f"the graph {graph} is being built by another process: one build at a time, and any number of readers. "
                "Wait until the other build has ended, then run this again."
            ) from None
        yield

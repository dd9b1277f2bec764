"""The dense part of an index folder: vectors one after the other in a file, and which passage each of them is.

A vector's place is never used twice. One whose passage is gone or has changed stays in the file, nameless, until more than a
quarter are; then those that are left are copied into new files, and the manifest names these.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import MALFORMED, IndexUnavailable, malformation
from gnothi.files import DATABASE_ERRORS, all_regular
from gnothi.retrieval.dense.encoders import Encoding, Vectors
from gnothi.retrieval.folder import FILE, Kind, disk_errors, read_fields, write_manifest
from gnothi.typed import typed
from gnothi.version import __version__

FOLDER = "dense"
_EMBED = "gnothi index embed PATH --encoder MODEL"
KIND = Kind("gnothi-dense", 1, "dense part", "the dense part of an index", _EMBED, f"Remove that folder, then run `{_EMBED}`.")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (row INTEGER PRIMARY KEY, id TEXT UNIQUE, digest BLOB);
CREATE INDEX IF NOT EXISTS by_digest ON rows (digest);
"""
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Manifest:
    """``fingerprint`` is that of the encoders' weights; ``content`` the index's (its own manifest's) whose passages all have
    their vectors, empty until there was one; ``generation`` tells the files in force."""

    encoder: str
    question_encoder: str = ""
    question_prompt: str | None = None
    passage_prompt: str | None = None
    fingerprint: str = ""
    dimension: int = 0
    passages: int = 0
    content: str = ""
    generation: int = 0
    format: str = KIND.format
    version: int = KIND.version
    created_by: str = __version__

    @property
    def encoding(self) -> Encoding:
        return Encoding(self.encoder, self.question_encoder, self.question_prompt, self.passage_prompt)

    def digest(self) -> str:
        """Of all that vectors depend on beside the passages; where folders lie does not count if their weights are known."""
        names = () if self.fingerprint else (self.encoder, self.question_encoder)
        values = (*names, self.fingerprint, bool(self.question_encoder), self.question_prompt, self.passage_prompt)
        return hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest()


def read_manifest(index: Path) -> Manifest | None:
    """Of an index folder's dense part; None where it has none. Raises IndexUnavailable for one that cannot be read."""
    folder = index / FOLDER
    if not (folder / FILE).is_file():
        return None
    try:
        all_regular(folder)
        manifest: Manifest = typed(Manifest, read_fields(folder, KIND))
        if min(manifest.dimension, manifest.passages, manifest.generation) < 0:
            raise ValueError("a number below 0")
    except OSError as error:
        raise damaged(folder, str(error)) from None
    except MALFORMED as error:
        raise damaged(folder, f"its manifest is not valid ({malformation(error)})") from None
    return manifest


def damaged(folder: Path, what: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"the vectors in {folder} are damaged: {what}. Remove that folder, then run "
        f"`gnothi index embed {folder.parent} --encoder MODEL`."
    )


class Rows:
    """Which passage each vector is of. ``read_only`` for searching; then it is used from one thread at a time."""

    def __init__(self, folder: Path, generation: int, read_only: bool = True) -> None:
        self._folder = folder
        path = folder / f"rows-{generation}.sqlite"
        with self._errors():
            mode = "ro" if read_only else "rwc"
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, check_same_thread=False)
            if not read_only:
                self._db.executescript(_SCHEMA)

    def __len__(self) -> int:
        """Number of vectors, nameless ones included."""
        with self._errors():
            return int(self._db.execute("SELECT coalesce(max(row) + 1, 0) FROM rows").fetchone()[0])

    @property
    def named(self) -> int:
        with self._errors():
            return int(self._db.execute("SELECT count(id) FROM rows").fetchone()[0])

    def ids(self, rows: Sequence[int]) -> dict[int, str]:
        """The passages' ids by row; nameless ones are left out."""
        result: dict[int, str] = {}
        for start in range(0, len(rows), _IDS_AT_ONCE):
            chunk = [int(row) for row in rows[start : start + _IDS_AT_ONCE]]
            marks = ",".join("?" * len(chunk))
            with self._errors():
                rows_of = self._db.execute(f"SELECT row, id FROM rows WHERE id IS NOT NULL AND row IN ({marks})", chunk)
                result |= ((row, str(key)) for row, key in rows_of)
        return result

    def of(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """The rows of these passages, in order; those that have none are left out."""
        every, result = list(ids), list[int]()
        for start in range(0, len(every), _IDS_AT_ONCE):
            chunk = every[start : start + _IDS_AT_ONCE]
            marks = ",".join("?" * len(chunk))
            with self._errors():
                result += (row for (row,) in self._db.execute(f"SELECT row FROM rows WHERE id IN ({marks})", chunk))
        return np.array(sorted(result), np.int64)

    def digest(self, passage_id: str) -> bytes | None:
        """Of the passage that was encoded under this id; None where none was, or none that is one is noted."""
        with self._errors():
            row = self._db.execute("SELECT digest FROM rows WHERE id = ?", (passage_id,)).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else None

    def same(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """A row of a passage of the same title and text, whatever its id is or was; those that have none are left out."""
        result: dict[bytes, int] = {}
        with self._errors():
            for digest in digests:
                row = self._db.execute("SELECT row FROM rows WHERE digest = ? LIMIT 1", (digest,)).fetchone()
                if row:
                    result[digest] = int(row[0])
        return result

    def every_id(self) -> Iterator[str]:
        with self._errors():
            for (key,) in self._db.execute("SELECT id FROM rows WHERE id IS NOT NULL ORDER BY row"):
                if not isinstance(key, str):
                    raise damaged(self._folder, f"the id {key!r:.60} is no text")
                yield key

    def alive(self) -> NDArray[np.int64]:
        """The rows that have a passage, in order."""
        with self._errors():
            return np.fromiter(
                (row for (row,) in self._db.execute("SELECT row FROM rows WHERE id IS NOT NULL ORDER BY row")), np.int64
            )

    def add(self, digests: Mapping[str, bytes]) -> None:
        """The passages of the next vectors, by id; a vector of the same id before loses its name."""
        first = len(self)
        with self._errors(), self._db:
            self._db.executemany("UPDATE rows SET id = NULL WHERE id = ?", ((key,) for key in digests))
            self._db.executemany(
                "INSERT INTO rows VALUES (?, ?, ?)", ((first + n, *one) for n, one in enumerate(digests.items()))
            )

    def drop(self, ids: Iterable[str]) -> None:
        with self._errors(), self._db:
            self._db.executemany("UPDATE rows SET id = NULL WHERE id = ?", ((key,) for key in ids))

    def copy_named(self, other: Rows) -> None:
        """Into an empty table, without gaps."""
        with self._errors(), other._db:
            named = self._db.execute("SELECT id, digest FROM rows WHERE id IS NOT NULL ORDER BY row")
            other._db.executemany("INSERT INTO rows VALUES (?, ?, ?)", ((n, *one) for n, one in enumerate(named)))

    def close(self) -> None:
        """Idempotent."""
        if hasattr(self, "_db"):
            self._db.close()

    def __del__(self) -> None:  # an index may be dropped unclosed; from 3.13 on Python warns of databases that are
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            if isinstance(error, sqlite3.OperationalError) and "unable to open" not in str(error):
                with disk_errors(self._folder):
                    raise
            raise damaged(self._folder, str(error)) from None


class Store:
    """The dense part of an index while it is written; one writer at a time, which the caller sees to."""

    def __init__(self, index: Path, manifest: Manifest) -> None:
        self.folder = index / FOLDER
        self.manifest = manifest
        with disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
            self.note(manifest)
            self._sweep()
            self._open()

    def note(self, manifest: Manifest) -> None:
        self.manifest = manifest
        with disk_errors(self.folder):
            write_manifest(self.folder, manifest)

    def add(self, vectors: Vectors, digests: Mapping[str, bytes]) -> None:
        """Durable when it returns; nothing of it is there after a kill before."""
        with disk_errors(self.folder):
            self._file.write(np.ascontiguousarray(vectors, np.float32).tobytes())
            self._file.flush()
            os.fsync(self._file.fileno())
        self.rows.add(digests)

    def vectors(self) -> Vectors:
        """All of them, memory-mapped."""
        return mapped(self.folder, self.manifest, len(self.rows))

    def compact(self) -> None:
        """New files without the nameless vectors, if these are many."""
        alive = self.rows.alive()
        if len(self.rows) <= len(alive) * 4 / 3:
            return
        old = self.vectors()
        renewed = replace(self.manifest, generation=self.manifest.generation + 1)
        with disk_errors(self.folder):
            with vectors_file(self.folder, renewed).open("wb") as file:
                for start in range(0, len(alive), 4096):
                    file.write(old[alive[start : start + 4096]].tobytes())
                file.flush()
                os.fsync(file.fileno())
            rows = Rows(self.folder, renewed.generation, read_only=False)
            self.rows.copy_named(rows)
            rows.close()
            self.close()
            self.note(renewed)
            self._sweep()
            self._open()

    def close(self) -> None:
        self._file.close()
        self.rows.close()

    def _open(self) -> None:
        self.rows = Rows(self.folder, self.manifest.generation, read_only=False)
        self._file = vectors_file(self.folder, self.manifest).open("ab")
        noted = len(self.rows) * self.manifest.dimension * 4
        if self._file.tell() < noted:
            self.close()
            raise damaged(self.folder, "some of the vectors that it lists are missing")
        self._file.truncate(noted)  # what a kill left behind of vectors whose passages were not noted yet

    def _sweep(self) -> None:
        """Remove what is of another generation: an older one, or one whose making was interrupted."""
        for file in self.folder.iterdir():
            generation = file.name.partition("-")[2].partition(".")[0]
            if generation.isdigit() and int(generation) != self.manifest.generation:
                file.unlink()


def vectors_file(folder: Path, manifest: Manifest) -> Path:
    return folder / f"vectors-{manifest.generation}.f32"


def mapped(folder: Path, manifest: Manifest, rows: int) -> Vectors:
    """Shape (rows, dimension), memory-mapped. Raises IndexUnavailable where there are fewer."""
    if rows == 0:
        return np.zeros((0, manifest.dimension), np.float32)
    try:
        return np.memmap(vectors_file(folder, manifest), np.float32, "r", shape=(rows, manifest.dimension))
    except (OSError, *MALFORMED) as error:
        raise damaged(folder, str(error)) from None

"""Adding to and deleting from a BM25 index folder. One writer at a time; readers go on with the last commit."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import tantivy

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.files import utf8
from gnothi.locks import holder
from gnothi.retrieval import analysis, stores
from gnothi.retrieval.folder import disk_errors, prepare, read_begun, read_manifest, write_begun, write_manifest
from gnothi.types import Passage, encodable

LEAST_MEMORY_MB = 64
DEFAULT_MEMORY_MB = 256
# What a build takes beside tantivy's buffer: interpreter, merges, the texts on their way (measured: docs/results/retrieval.md).
_OTHER_MEMORY_MB = 48
_LEAST_BUFFER = 15_000_000  # tantivy's own limit

BEGUN = "gnothi-begun.json"
"""Origins whose passages a commit writes, and those of which it takes some away: should a kill come before the ledger knows."""

Put = Literal["added", "replaced", "standing"]


class IndexWriter:
    """A context manager. Nothing is visible, or safe from a kill, before ``commit``; leaving the block without one drops it.

    ``put`` replaces a passage of the same id. Raises IndexUnavailable when the folder is not ours, another writer is at work,
    or the disk is full; the last commit is intact in each case. InvalidSetting for another ``language`` (of
    ``retrieval.languages``) than the index has, or other ``fields`` (``analysis.Fields``); "" are its own.
    """

    def __init__(
        self, path: str | os.PathLike[str], memory_mb: int = DEFAULT_MEMORY_MB, language: str = "", fields: str = ""
    ) -> None:
        if memory_mb < LEAST_MEMORY_MB:
            raise InvalidSetting(f"memory for building an index: got {memory_mb} MB, expected at least {LEAST_MEMORY_MB}.")
        self.path = Path(path)
        self.pending_bytes = 0
        self.covered: Counter[tuple[str, str]] = Counter()
        self._begun: set[str] = set()
        self._lost: set[str] = set()
        with disk_errors(self.path):
            manifest = prepare(self.path, language, fields)
            self.language, self._fields = manifest.language, manifest.fields
            stores.check(self.path, writes=True)
            self._index = tantivy.Index(analysis.schema(self.language, self._fields), path=utf8(self.path))
            analysis.register(self._index, self.language)
            self._index.config_reader("manual")
            self._writer = self._locked(max(_LEAST_BUFFER, (memory_mb - _OTHER_MEMORY_MB) * 1_000_000))
            self._manifest = read_manifest(self.path)  # only now is it nobody else's
            self._content = self._manifest.content
            self._refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(merge=kind is None)

    @property
    def passages(self) -> int:
        """Number of passages as of the last commit."""
        return int(self._committed.num_docs)

    def put(self, passage: Passage, origin: str = "") -> Put:
        """Add the passage, or replace the one of the same id, unless it stands there already, from the same origin."""
        return self.put_all([(passage, origin)])[0]

    def put_all(self, passages: Sequence[tuple[Passage, str]]) -> list[Put]:
        """``put`` for each, with its origin."""
        with disk_errors(self.path):
            return [self._put(passage.storable(), origin) for passage, origin in passages]

    def delete(self, passage_id: str) -> bool:
        """False when there is no passage of this id."""
        passage_id = encodable(passage_id)
        with disk_errors(self.path):
            there = self._there(passage_id)
            if there:
                self._active.delete_documents_by_term(analysis.ID, passage_id)
                self._pending[passage_id] = None
                self._note("delete", passage_id)
        return there

    def delete_origin(self, origin: str) -> None:
        """Delete every passage put with this origin."""
        with disk_errors(self.path):
            self._active.delete_documents_by_term(analysis.ORIGIN, origin)
            self._emptied[origin] = self._tick()
            self._lost.add(origin)
            # Which passages these are is not known here; origins differ from build to build, so they are not named.
            if self._committed.doc_freq(analysis.ORIGIN, origin) > 0:
                self._note("delete origin")

    def commit(self, complete: bool = True) -> None:
        """Make what was put and deleted visible and durable, all or nothing. ``complete`` False: more of this build follows."""
        with disk_errors(self.path):
            if self._content != self._manifest.content:
                # First, so that after a kill between the two the content is not taken for what it was before.
                self._manifest = replace(self._manifest, content=self._content, complete=False)
                write_manifest(self.path, self._manifest)
                begun, lost = read_begun(self.path / BEGUN)  # of commits that no ledger knows of yet
                write_begun(self.path / BEGUN, begun | self._begun, lost | self._lost)
                self._begun, self._lost = set(), set()
            self._active.commit()
            self._refresh()
            self._manifest = replace(self._manifest, passages=self.passages, complete=complete)
            write_manifest(self.path, self._manifest)
        self.pending_bytes = 0

    def close(self, merge: bool = True) -> None:
        """Give up the lock. ``merge`` waits for merges under way, which make searching faster. Idempotent."""
        writer, self._writer = self._writer, None
        if writer is not None and merge:
            with disk_errors(self.path):
                writer.wait_merging_threads()

    def _put(self, passage: Passage, origin: str) -> Put:
        known = passage.id in self._pending or (self._filled and self._committed.doc_freq(analysis.ID, passage.id) > 0)
        if known:
            untouched = passage.id not in self._pending and origin not in self._emptied
            if untouched and passage == self._standing(passage.id, origin):
                return "standing"
            self._cover(passage.id, origin)
            self._active.delete_documents_by_term(analysis.ID, passage.id)
        self._active.add_document(analysis.document(passage, origin, self.language, self._fields))
        self._pending[passage.id] = (origin, self._tick())
        self._begun.add(origin)
        self._note("put", *passage.change)
        self.pending_bytes += passage.size
        return "replaced" if known else "added"

    def _locked(self, buffer: int) -> tantivy.IndexWriter | None:
        try:
            return self._index.writer(buffer, 1)
        except ValueError as error:
            if "LockBusy" not in str(error):
                raise
            raise IndexUnavailable(
                f"the index {self.path} is being written by another process: an index has one writer at a time, and any number "
                "of readers. Wait until the other build or delete has ended, then run this again."
                f"{holder(Path(self.path) / '.tantivy-writer.lock')}"
            ) from None

    @property
    def _active(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise IndexUnavailable(f"the writer of the index {self.path} is closed: open a new one.")
        return self._writer

    def _refresh(self) -> None:
        self._index.reload()
        self._committed = self._index.searcher()
        self._filled = self._committed.num_docs > 0
        # Since the last commit: each passage touched, with its origin and when (None: deleted), and when an origin was deleted.
        self._pending: dict[str, tuple[str, int] | None] = {}
        self._emptied: dict[str, int] = {}
        self._ticks = 0

    def _note(self, *change: str) -> None:
        """What tells this content from the one before the change."""
        self._content = hashlib.blake2b(repr((self._content, change)).encode(), digest_size=16).hexdigest()

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def _there(self, passage_id: str) -> bool:
        """Whether the passage is in the index as the next commit will make it."""
        if passage_id not in self._pending:
            gone = any(self._standing(passage_id, origin) for origin in self._emptied)
            return not gone and self._standing(passage_id) is not None
        touched = self._pending[passage_id]
        return touched is not None and touched[1] > self._emptied.get(touched[0], 0)

    def _cover(self, passage_id: str, origin: str) -> None:
        """Count that a passage of this id takes the place of another."""
        touched = self._pending.get(passage_id)
        before = touched[0] if touched else None
        if passage_id not in self._pending:
            query = tantivy.Query.term_query(self._index.schema, analysis.ID, passage_id, "basic")
            hits = self._committed.search(query, limit=1, count=False).hits
            before = str(self._committed.doc(hits[0][1]).get_first(analysis.ORIGIN)) if hits else None
        if before is not None:
            self._lost.add(before)
            self.covered[before, origin] += 1

    def _standing(self, passage_id: str, origin: str | None = None) -> Passage | None:
        """The committed passage of this id (and origin)."""
        schema = self._index.schema
        wanted = [tantivy.Query.term_query(schema, analysis.ID, passage_id, "basic")]
        if origin is not None:
            wanted.append(tantivy.Query.term_query(schema, analysis.ORIGIN, origin, "basic"))
        query = tantivy.Query.boolean_query([(tantivy.Occur.Must, clause) for clause in wanted])
        hits = self._committed.search(query, limit=1, count=False).hits
        return analysis.passage(self._committed.doc(hits[0][1])) if hits else None

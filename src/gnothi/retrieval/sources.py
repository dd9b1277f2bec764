"""Reading the sources of an index or a graph one after another: what all builds have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest.base import START, NoDocument, Unreadable
from gnothi.retrieval.ingest.discover import Found, Skipped
from gnothi.retrieval.ledger import Entry, Ledger, plain
from gnothi.retrieval.left_out import LeftOut

LISTED = 20
_MOST_LEFT_OUT = 10_000


@dataclass(slots=True)
class Listing:
    """A count with its first entries, so that a million problems take no memory."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.count += 1
        self.show(text)

    def show(self, text: str) -> None:
        """List an entry that is counted elsewhere."""
        if len(self.first) < LISTED:
            self.first.append(text)


@dataclass(slots=True)
class SourcesReport:
    """``sources`` were read in this run or found ``unchanged``. Of all of them, those read earlier included, ``empty`` records
    held nothing and ``invalid`` ones could not be read (only those of this run are listed). ``skipped`` are files that were not
    meant, ``unreadable`` those that should have been read and could not be."""

    sources: int = 0
    unchanged: int = 0
    empty: int = 0
    invalid: Listing = field(default_factory=Listing)
    skipped: Listing = field(default_factory=Listing)
    unreadable: Listing = field(default_factory=Listing)
    seconds: float = 0.0


R = TypeVar("R", bound=SourcesReport)


class SourceReader(ABC, Generic[R]):
    """``settings`` are those that make another version of a file that is the same; ``total`` is the bytes of all sources."""

    def __init__(self, report: R, ledger: Ledger, settings: str, skip_invalid: bool, total: int) -> None:
        self.report = report
        self.ledger = ledger
        self.settings = settings
        self.skip_invalid = skip_invalid
        self.total = total
        self.bytes_done = 0
        self.left_out: list[LeftOut] = []
        self.current: Entry | None = None  # the source being read, and how far
        self.started = self.last_commit = time.monotonic()

    def read_all(self, sources: Iterable[Found | Skipped]) -> None:
        for source in sources:
            if isinstance(source, Skipped):
                listing = self.report.unreadable if source.unreadable else self.report.skipped
                listing.add(f"{source.path} {source.reason}")
                self._leave_out(source.path, source.reason, source.unreadable)
            else:
                self._source(source)

    def _source(self, found: Found) -> None:
        entry = self.ledger.entry(found, self.settings)
        self.report.sources += 1
        if entry.complete:
            self.report.unchanged += 1
        else:
            entry = self._try(found, entry)
        self.report.invalid.count += entry.invalid
        self.report.empty += entry.empty
        self.bytes_done += found.size
        self._tell(0)

    def _try(self, found: Found, entry: Entry) -> Entry:
        self.current = entry
        try:
            self._read(found, entry)
        except (Unreadable, MissingDependency) as error:
            reached, self.current = self.current, None
            if reached.checkpoint == START:
                self._drop(entry.origin)
            else:
                self.ledger.put(reached)
            if found.only:
                raise
            listing = self.report.skipped if isinstance(error, NoDocument) else self.report.unreadable
            self._leave_out(found.path, error.message.removeprefix(f"{found.path} "), not isinstance(error, NoDocument))
            listing.add(error.message)  # with the marks of parameters, as every message
            self.report.sources -= 1
            return entry
        for origin in self.current.stale:
            self._drop(origin)
        entry, self.current = replace(self.current, stale=(), complete=True), None
        self.ledger.put(entry)
        return entry

    def _leave_out(self, path: Path, reason: str, unreadable: bool) -> None:
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out.append(LeftOut(plain(path), plain(reason), unreadable))

    def _save(self) -> None:
        """Note how far reading has come, after what was read is safe."""
        if self.current:
            self.ledger.put(self.current)
        self.ledger.save()
        self.last_commit = time.monotonic()

    @abstractmethod
    def _read(self, found: Found, entry: Entry) -> None:
        """Read a source from the entry's checkpoint on, keeping ``current``."""

    def _drop(self, origin: str) -> None:
        """What was read of this version of a file counts no more."""

    @abstractmethod
    def _tell(self, read: int) -> None:
        """Report progress: ``read`` bytes of the current source."""

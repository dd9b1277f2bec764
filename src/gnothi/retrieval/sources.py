"""Reading the sources of an index or a graph one after another: what all builds have in common."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from gnothi.errors import InvalidInput, MissingDependency
from gnothi.retrieval.ingest.base import START, NoDocument, Unreadable
from gnothi.retrieval.ingest.discover import Skipped, SourceFile, Survey, discover, file
from gnothi.retrieval.ledger import Entry, Ledger, from_plain, is_below, is_gone, plain
from gnothi.retrieval.left_out import LeftOut

# The folders and files that a build was given, as the ledger knows them: whatever path leads there, and wherever they lay.


class Roots:
    """``read`` are the sources to walk, each by the path it is known by, ``noted`` what the ledger notes as the root of what is
    found there; what is gone ``below`` leaves."""

    def __init__(self, ledger: Ledger, survey: Survey, out: str, keep_missing: bool) -> None:
        """Raises InvalidInput where all that was known of a folder seems to be gone, unless it is kept."""
        known = ledger.roots()
        self.read: list[Path] = []
        self.noted: dict[Path, Path] = {}
        self.below: list[str] = []
        for path, root in survey.roots.items():
            here = (
                path
                if any(is_below(plain(path), folder) for folder in known)
                else _as_known(path, [*known, *map(plain, self.read)])
            )
            if not root.files and not keep_missing:
                _refuse_lost(ledger, here, root.unreadable, out)
            if here not in self.noted:
                self.read.append(here)
                self.noted[here] = min((Path(folder) for folder in known if _reaches(folder, here)), default=here, key=_length)
                self.below.append(plain(here))
        for here in list(self.read):
            _respell(ledger, here, known)
            if next(ledger.below(plain(here)), None) is None:
                self.below += [folder for folder in known if is_gone(folder) and _has_moved(ledger, from_plain(folder), here)]

    def holds(self, path: str) -> bool:
        return any(is_below(path, one) for one in self.below)


def _as_known(path: Path, known: Iterable[str]) -> Path:
    """The path by which a known root reaches the same place, where links do."""
    real = os.path.realpath(path)
    reaching = [(root, there) for root in known if is_below(real, there := os.path.realpath(from_plain(root)))]
    if not reaching:
        return path
    root, there = max(reaching, key=lambda pair: len(pair[1]))
    return from_plain(root) / os.path.relpath(real, there) if real != there else from_plain(root)


def _respell(ledger: Ledger, here: Path, known: Iterable[str]) -> None:
    """What is known by a link into this folder is known by its place from now on."""
    real = os.path.realpath(here)
    for root in known:
        there = os.path.realpath(from_plain(root))
        if there in (root, real) or is_below(root, plain(here)) or not is_below(there, real):
            continue
        to = plain(here / os.path.relpath(there, real))
        for entry in list(ledger.below(root)):
            ledger.put(entry.at(to + entry.path[len(root) :], to))


def _reaches(root: str, path: Path) -> bool:
    """Whether a walk from the root comes there: not through hidden or linked folders."""
    if not is_below(plain(path), root):
        return False
    parts = path.relative_to(root).parts
    between = [Path(root, *parts[:number]) for number in range(1, len(parts))]
    return not any(one.startswith(".") for one in parts) and not any(map(os.path.islink, between))


def _has_moved(ledger: Ledger, root: Path, here: Path) -> bool:
    """Whether one of the root's files lies here, at the same place below, and is the same file."""
    for entry in ledger.below(plain(root)):
        moved = file(here / from_plain(entry.path).relative_to(root), here, ("",))
        if getattr(moved, "inode", None) == entry.inode and entry.stamp.startswith(f"{getattr(moved, 'content_stamp', '')}:"):
            return True
    return False


def _refuse_lost(ledger: Ledger, path: Path, unreadable: str, out: str) -> None:
    count = sum(1 for _ in ledger.below(plain(path)))
    if count:
        raise InvalidInput(
            f"{path} {unreadable or 'holds no file that can be read'}, and {count:,} of its files are in {out}. Nothing was "
            f"changed: is its disk mounted? If they are to be removed, run `gnothi index delete {out} {path}`."
        )


def _length(path: Path) -> int:
    return len(path.parts)


LISTED = 20
_MOST_LEFT_OUT = 10_000
_ANY = "*"  # as the key of another source: any


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
    """``sources`` were read in this run or found ``unchanged``; ``moved`` and ``deleted`` ones
    left, these named as ``gone``. Of all of them, those read
    earlier included, ``empty`` records held nothing and ``invalid`` ones could not be read (only those of this run are listed).
    ``skipped`` are files that were not meant, ``unreadable`` those that should have been read and could not be."""

    sources: int = 0
    unchanged: int = 0
    moved: int = 0
    deleted: int = 0
    gone: Listing = field(default_factory=Listing)
    empty: int = 0
    invalid: Listing = field(default_factory=Listing)
    skipped: Listing = field(default_factory=Listing)
    unreadable: Listing = field(default_factory=Listing)
    notices: Listing = field(default_factory=Listing)
    seconds: float = 0.0


R = TypeVar("R", bound=SourcesReport)


class SourceReader(ABC, Generic[R]):
    """``settings`` are those that make another version of a file that is the same; ``found`` is what there is to read, of the
    formats ``formats``, for the index ``out``. ``keep_missing`` keeps what was read from files that are gone."""

    def __init__(
        self,
        report: R,
        ledger: Ledger,
        settings: str,
        skip_invalid: bool,
        survey: Survey,
        out: str,
        formats: Collection[str],
        keep_missing: bool = False,
    ) -> None:
        self.report = report
        self.ledger = ledger
        self.settings = settings
        self.skip_invalid = skip_invalid
        self.total = survey.total
        self.formats = formats
        self.keep_missing = keep_missing
        self.out = out
        self.bytes_done = 0
        self.left_out: list[LeftOut] = []
        self.current: Entry | None = None  # the source being read, and how far
        self.started = self.last_commit = time.monotonic()
        self.only = len(survey.roots) == 1
        self.roots = Roots(ledger, survey, out, keep_missing)
        self._takes = [] if keep_missing else self.roots.below
        self._unseen: list[str] = []  # what could not be looked at
        self._again: set[str] = set()
        self.lost: dict[str, Counter[str]] = defaultdict(Counter)  # passages of each source, by the source that has their ids
        self.repeating: set[str] = set()  # sources with several passages of an id
        self._rereads = False

    def read_all(self) -> None:
        """Read what is new or has changed; then what is gone leaves."""
        for source in discover(self.roots.read, Path(self.out), self.formats, self.only):
            if isinstance(source, Skipped):
                listing = self.report.unreadable if source.unreadable else self.report.skipped
                listing.add(f"{source.path} {source.reason}")
                self.leave_out(LeftOut(plain(source.path), plain(source.reason), source.unreadable))
                if source.unreadable:
                    self._unseen.append(plain(source.path))
            elif self.ledger.see(plain(source.path)):
                self._source(source)
        self._flush()
        self._follow()
        self._read_again()

    def _source(self, source: SourceFile) -> None:
        self.report.sources += 1
        try:
            entry = self._known(source)
            if entry.complete and not entry.again:
                self.report.unchanged += 1
            else:
                entry = self._try(source, entry)
            self.report.invalid.count += entry.invalid
            self.report.empty += entry.empty
        except (Unreadable, MissingDependency) as error:
            if source.named and self.only:
                raise
            known = self.ledger.by_path(plain(source.path))
            note = " What was read from it before stays." if known and (known.complete or known.stale) else ""
            unread = not isinstance(error, NoDocument)
            reason = error.message.removeprefix(f"{source.path}").lstrip(", ")
            self.leave_out(LeftOut(plain(source.path), plain(reason), unread))
            listing = self.report.unreadable if unread else self.report.skipped
            listing.add(error.message + note)  # with the marks of parameters, as every message
            self.report.sources -= 1
        self.bytes_done += source.size
        self._report_progress(0)

    def _known(self, source: SourceFile) -> Entry:
        try:
            return self.ledger.entry(source, self.roots.noted.get(source.root, source.root), self.settings, self._takes)
        except OSError as error:
            raise unreadable(source.path, error) from None

    def _try(self, source: SourceFile, entry: Entry) -> Entry:
        entry = replace(entry.once_more() if entry.again else entry, read=int(time.time()))
        self.current = entry
        try:
            self._read(source, entry)
            if entry.again:
                self._flush()
        except (Unreadable, MissingDependency):
            reached, self.current = self.current, None
            if reached.checkpoint != START:
                self.ledger.put(reached)
            elif not entry.again:
                self._drop(entry.origin)
            raise
        for origin in self.current.stale:
            self._drop(origin)
        if self.current.stale:
            self._others_again(self.current)
        entry, self.current = replace(self.current, stale=(), complete=True, again=False), None
        now = file(source.path, source.root, self.formats)
        if not isinstance(now, SourceFile) or now.stamp != source.stamp:
            self.report.notices.add(f"{source.path} changed while it was read: the next build reads it again.")
            entry = replace(entry, stamp="", digest="")
        self.ledger.put(entry)
        return entry

    def leave_out(self, source: LeftOut) -> None:
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out.append(source)

    # --- what is gone -----------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """What is gone from the folders that were read leaves, and from others what lies here now."""
        moved = {entry.key: entry for entry in self.ledger.moved() if is_gone(entry.path)}
        gone = {
            entry.key: entry
            for folder in ([] if self.keep_missing else self.roots.below)
            for entry in self.ledger.unseen(folder)
            if self._has_left(entry, folder)
        }
        for entry in (gone | moved).values():
            self._others_again(entry)
            self.forget(entry)
            if entry.key not in moved:
                self.report.gone.add(entry.key)
        for origin in self.ledger.forgotten():
            self._drop(origin)
        self.report.moved, self.report.deleted = len(moved), len(gone.keys() - moved.keys())
        for root, count in self.ledger.roots().items():
            if is_gone(root) and not (self.keep_missing and self.roots.holds(root)):
                self.report.notices.add(
                    f"{root} is not there; what was read of it stays ({count:,} files). `gnothi index delete {self.out} "
                    f"{root}` takes it out."
                )

    def _has_left(self, entry: Entry, folder: str) -> bool:
        """Whether a walk of the folder would have met it. One that was named itself, hidden say, is not met."""
        if any(is_below(entry.path, one) for one in self._unseen):
            return False
        return is_below(folder, entry.root) or self.ledger.sees_below(entry.root) or is_gone(entry.root)

    def forget(self, entry: Entry) -> None:
        """Take out what was read from a source."""
        for origin in (entry.origin, *entry.stale):
            self._drop(origin)
        self.ledger.remove(entry.key)

    # --- ids that several sources have ------------------------------------------------------------------------------

    def note_shared(self, pairs: Mapping[tuple[str, str], int]) -> int:
        """Of passages that took the place of others: the origins of both, and how many. The source that comes later in a walk
        has the id, in whatever order they are read. Returns how many are of two sources that are there, or twice in one."""
        replaced = 0
        for (before, after), count in pairs.items():
            loser, winner = self._owner(before), self._owner(after)
            if loser is None or winner is None:
                continue
            if loser.key == winner.key:
                if before == after and not self._rereads:  # else they may be those that were read before
                    replaced += count
                    self.repeating.add(loser.key)
                continue
            walked = self.roots.holds(loser.path)
            if walked and is_gone(loser.path):
                continue
            replaced += count
            place, same_root = self.ledger.place(loser.path), loser.root == winner.root
            if same_root:  # in the order of a walk, whichever part of it this build reads
                later = loser.path.split("/") > winner.path.split("/")
            else:
                later = walked and (place == 0 or place > self.ledger.place(winner.path))
            self._keep(replace(loser, shares=_with(loser.shares, winner.key), again=loser.again or later))
            self._keep(replace(winner, shares=_with(winner.shares, loser.key)))
            if later and (place or same_root):
                self._again.add(loser.key)
            elif not later:
                self.lost[loser.key][winner.key] += count
        return 0 if self._rereads else replaced

    def note_standing(self, origin: str) -> None:
        """A passage of a source stands there already: an earlier build stored it and was killed before it noted so. Whose place
        it took is not known any more."""
        entry = self._owner(origin)
        if entry and not entry.again:
            self._keep(replace(entry, shares=_with(entry.shares, _ANY)))

    def _owner(self, origin: str) -> Entry | None:
        # Passages of its earlier versions, which the ledger still tells of, are the current source's.
        ours = self.current and origin in (self.current.origin, *self.current.stale)
        return self.current if ours else self.ledger.by_origin(origin)

    def _keep(self, entry: Entry) -> None:
        if self.current and self.current.key == entry.key:
            self.current = entry
        else:
            self.ledger.put(entry)

    def _others_again(self, entry: Entry) -> None:
        """What it took the place of is wanted again."""
        for other in list(self.ledger.entries()) if _ANY in entry.shares else map(self.ledger.by_key, entry.shares):
            if other is not None and other.key != entry.key:
                self.ledger.put(other.to_read_again())
                self._again.add(other.key)

    def _read_again(self) -> None:
        self._rereads = True
        while self._again:
            there = [entry for key in self._again if (entry := self.ledger.by_key(key)) and entry.again]
            self._again = {entry.key for entry in there}
            if not there:
                return
            entry = min(there, key=lambda one: self.ledger.place(one.path))
            self._again.remove(entry.key)
            source = file(from_plain(entry.path), from_plain(entry.root), self.formats)
            if isinstance(source, SourceFile):
                with suppress(Unreadable, MissingDependency):  # reported when it was met, or of another folder
                    self._try(source, self._known(source))

    # --- how reading is done ----------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Note how far reading has come, after what was read is safe."""
        if self.current:
            self.ledger.put(self.current)
        self.ledger.save()
        self.last_commit = time.monotonic()

    @abstractmethod
    def _read(self, source: SourceFile, entry: Entry) -> None:
        """Read a source from the entry's checkpoint on, keeping ``current``."""

    def _flush(self) -> None:
        """What was read is put into the index, if not made safe."""

    def _drop(self, origin: str) -> None:
        """What was read of this version of a file counts no more."""

    @abstractmethod
    def _report_progress(self, read: int) -> None:
        """Report progress: ``read`` bytes of the current source."""


def unreadable(path: Path, error: OSError) -> Unreadable:
    return Unreadable(f"{path} cannot be read: {error.strerror}. Check its permissions and the disk.")


def _with(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    return keys if key in keys else (*keys, key)

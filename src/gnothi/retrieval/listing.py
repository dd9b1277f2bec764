"""What an index was read from, file by file, and taking such files out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.ingest.discover import SourceFile, file, whole
from gnothi.retrieval.ledger import Entry, FolderLedger, Ledger, from_plain, is_below, is_gone, plain
from gnothi.retrieval.targets import check_built, target
from gnothi.retrieval.writer import DEFAULT_MEMORY_MB


@dataclass(frozen=True, slots=True)
class Source:
    """A file that an index was read from. ``state``: ``read``, ``partly read`` (the next build goes on), ``changed`` since,
    ``gone``, or ``unreadable``. ``modified`` is the date of what was read, ``read`` when that was, ``bytes`` its size."""

    source: str
    path: str
    root: str
    passages: int
    bytes: int
    modified: str
    read: str
    state: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """``sources`` were taken out, with ``deleted`` passages; ``passages`` are left. ``there`` are the files of these that
    are still there, which the next build reads again; so it does those named ``again``, which hold passages of the same ids.
    ``missing`` names stand for nothing."""

    sources: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    deleted: int = 0
    passages: int = 0


def sources(folder: Path) -> Iterator[Source]:
    """In order of their names. ``folder`` holds the ledger. Raises IndexUnavailable."""
    with closing(FolderLedger(folder, writes=False)) as ledger:
        for entry in ledger.entries():
            size, modified, *_ = (entry.stamp or ":").split(":")
            yield Source(
                source=entry.key,
                path=entry.path,
                root=entry.root,
                passages=entry.passages,
                bytes=int(size or 0),
                modified=_date(int(modified or 0) / 1e9),
                read=_date(entry.read),
                state=_state(entry),
            )


def delete_sources(out: str | os.PathLike[str], names: Sequence[str]) -> Deleted:
    """Take what was read from files out of an index: each by its name there, its path, or a folder of either. Raises
    IndexUnavailable."""
    opening = target(out, DEFAULT_MEMORY_MB)
    check_built(out)
    with opening as opened:
        before, folder = opened.writer.passages, Path(out)
        deleted, chosen = take_out(opened.ledger, names)
        for entry in chosen:
            for origin in (entry.origin, *entry.stale):
                opened.writer.delete_origin(origin)
        if chosen:
            # A file that can be read in part only stays so after every build.
            complete = folder.is_dir() and read_manifest(folder).complete
            opened.writer.commit(complete or all(entry.complete for entry in opened.ledger.entries()))
            opened.ledger.save()
        return replace(deleted, deleted=before - opened.writer.passages, passages=opened.writer.passages)


def take_out(ledger: Ledger, names: Sequence[str]) -> tuple[Deleted, list[Entry]]:
    """Out of the ledger, which is not saved yet."""
    entries_by_name = {name: list(named(ledger, name)) for name in names}
    chosen = {entry.key: entry for entries in entries_by_name.values() for entry in entries}
    for key in chosen:
        ledger.remove(key)
    shared = sorted({key for entry in chosen.values() for key in entry.shares})
    others = [other for other in map(ledger.by_key, shared) if other]
    for other in others:
        ledger.put(other.to_read_again())
    there = tuple(sorted(entry.path for entry in chosen.values() if not is_gone(entry.path)))
    again, missing = tuple(other.key for other in others), tuple(name for name in names if not entries_by_name[name])
    return Deleted(tuple(sorted(chosen)), there, again, missing), list(chosen.values())


def named(ledger: Ledger, name: str) -> Iterator[Entry]:
    """The sources that a name stands for."""
    if known := ledger.by_key(name):
        yield known
        return
    paths = {plain(whole(name)), plain(os.path.abspath(name))}
    for entry in ledger.entries():
        if is_below(entry.key, name.rstrip("/")) or any(is_below(entry.path, path) for path in paths):
            yield entry


def _state(entry: Entry) -> str:
    if is_gone(entry.path):
        return "gone"
    now = file(from_plain(entry.path), from_plain(entry.root), ("",))
    if not isinstance(now, SourceFile) or not os.access(now.path, os.R_OK):
        return "unreadable"
    if now.stamp != entry.stamp.rstrip("?"):
        return "changed"
    return "read" if entry.complete and not entry.again else "partly read"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if seconds else ""

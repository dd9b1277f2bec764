"""The folders and files that a build was given, as the ledger knows them: whatever path leads there, and wherever they lay."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.discover import Survey, file
from gnothi.retrieval.ledger import Ledger, from_plain, is_below, is_gone, plain


class Roots:
    """``read`` are the sources to walk, each by the path it is known by, ``noted`` what the ledger notes as the root of what is
    found there; what is gone ``below`` leaves."""

    def __init__(self, ledger: Ledger, found: Survey, out: str, keep_missing: bool) -> None:
        """Raises InvalidInput where all that was known of a folder seems to be gone, unless it is kept."""
        known = ledger.roots()
        self.read: list[Path] = []
        self.noted: dict[Path, Path] = {}
        self.below: list[str] = []
        for path, root in found.roots.items():
            here = (
                path if any(is_below(plain(path), one) for one in known) else _as_known(path, [*known, *map(plain, self.read)])
            )
            if not root.files and not keep_missing:
                _refuse_lost(ledger, here, root.unreadable, out)
            if here not in self.noted:
                self.read.append(here)
                self.noted[here] = min((Path(one) for one in known if _reaches(one, here)), default=here, key=_length)
                self.below.append(plain(here))
        for here in list(self.read):
            _respell(ledger, here, known)
            if next(ledger.below(plain(here)), None) is None:
                self.below += [one for one in known if is_gone(one) and _has_moved(ledger, from_plain(one), here)]

    def holds(self, path: str) -> bool:
        return any(is_below(path, one) for one in self.below)


def _as_known(path: Path, known: Iterable[str]) -> Path:
    """The path by which a known root reaches the same place, where links do."""
    real = os.path.realpath(path)
    reaching = [(one, there) for one in known if is_below(real, there := os.path.realpath(from_plain(one)))]
    if not reaching:
        return path
    one, there = max(reaching, key=lambda pair: len(pair[1]))
    return from_plain(one) / os.path.relpath(real, there) if real != there else from_plain(one)


def _respell(ledger: Ledger, here: Path, known: Iterable[str]) -> None:
    """What is known by a link into this folder is known by its place from now on."""
    real = os.path.realpath(here)
    for one in known:
        there = os.path.realpath(from_plain(one))
        if there in (one, real) or is_below(one, plain(here)) or not is_below(there, real):
            continue
        to = plain(here / os.path.relpath(there, real))
        for entry in list(ledger.below(one)):
            ledger.put(entry.at(to + entry.path[len(one) :], to))


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
        found = file(here / from_plain(entry.path).relative_to(root), here, ("",))
        if getattr(found, "inode", None) == entry.inode and entry.stamp.startswith(f"{getattr(found, 'content_stamp', '')}:"):
            return True
    return False


def _refuse_lost(ledger: Ledger, path: Path, unreadable: str, out: str) -> None:
    count = sum(1 for _ in ledger.below(plain(path)))
    if count:
        raise InvalidInput(
            f"{path} {unreadable or 'holds no file that can be read'}, and {count:,} of its files are in {out}. Nothing was "
            f"changed: is its disk mounted? Where they are meant to go, run `gnothi index delete {out} {path}`."
        )


def _length(path: Path) -> int:
    return len(path.parts)

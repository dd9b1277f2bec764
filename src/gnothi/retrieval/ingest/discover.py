"""Which files a command's sources stand for. Folders are walked in order of names, without hidden files and linked folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.files import meant


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read. ``root`` is the source it was found under (itself when ``named`` by the user, and maybe as the ``only``
    one); ``stamp`` changes with the file."""

    path: Path
    root: Path
    size: int
    stamp: str
    only: bool = False

    @property
    def named(self) -> bool:
        return self.path == self.root


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file left out, and why; ``unreadable`` where it may have been meant."""

    path: Path
    reason: str
    unreadable: bool = False


def discover(sources: Sequence[str | os.PathLike[str]], exclude: Path, formats: Collection[str]) -> Iterator[Found | Skipped]:
    """Every file of the sources, once. The folder ``exclude`` (the index itself) is never read; ``formats`` are the ends
    of names that can be read.

    Raises InvalidInput for a source that is not there, or is the only one and a file of no known format.
    """
    for source in sources:
        root = Path(os.path.abspath(source))
        if root.is_dir():
            yield from _walk(root, exclude.absolute(), formats)
            continue
        found = _file(root, root, formats)
        if isinstance(found, Skipped) and len(sources) > 1 and os.path.exists(root):
            yield replace(found, unreadable=True)
            continue
        if isinstance(found, Skipped):
            raise InvalidInput(f"{source} {found.reason}. Expected a folder or a file that ends in {', '.join(formats)}.")
        yield replace(found, only=len(sources) == 1)


def _walk(root: Path, exclude: Path, formats: Collection[str]) -> Iterator[Found | Skipped]:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        if path == exclude:
            continue
        if not os.path.isdir(path):  # nor is a link to itself
            yield _file(path, root, formats)
        elif path == root or not path.is_symlink():
            try:
                names = sorted(os.listdir(path), reverse=True)
            except OSError as error:
                yield Skipped(path, f"cannot be read: {error.strerror}", unreadable=True)
                continue
            waiting += [path / name for name in names if not name.startswith(".")]


def _file(path: Path, root: Path, formats: Collection[str]) -> Found | Skipped:
    try:
        status = path.stat()
    except FileNotFoundError:
        near = meant(path).replace("Did you mean", ": did you mean").rstrip()
        return Skipped(path, f"does not exist{near}" if not path.is_symlink() else "is a link to nothing")
    except OSError as error:
        return Skipped(path, f"cannot be read: {error.strerror}", unreadable=True)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "is not a regular file")
    if not path.name.lower().endswith(tuple(formats)):
        return Skipped(path, "is of no known format" + (f" ({path.suffix})" if path.suffix else ""))
    return Found(path, root, status.st_size, f"{status.st_size}:{status.st_mtime_ns}")

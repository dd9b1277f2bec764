"""Which files a command's sources stand for. Folders are walked in order of names, without hidden files and linked folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.files import nearest

INDEX = "gnothi-index.json"  # its folder holds an index, or a graph
_SHOWN = 16


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read. ``root`` is the source it was found under (itself when ``named`` by the user). ``stamp`` changes with the
    file, at the time ``changed_ns`` last; its beginning ``content_stamp`` stays where the file is moved, as ``inode`` does."""

    path: Path
    root: Path
    size: int
    content_stamp: str = ""
    changed_ns: int = 0
    inode: str = ""

    @property
    def stamp(self) -> str:
        # The second time changes where a program writes and then sets the first one back.
        return f"{self.content_stamp}:{self.changed_ns}"

    @property
    def named(self) -> bool:
        return self.path == self.root


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file left out, and why; ``unreadable`` where it may have been meant."""

    path: Path
    reason: str
    unreadable: bool = False


@dataclass(slots=True)
class Root:
    """Number of files below a named source, and why it cannot be read, if so."""

    files: int = 0
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to read, before it is."""

    total: int
    roots: dict[Path, Root]

    @property
    def is_empty(self) -> bool:
        return not any(root.files for root in self.roots.values())


def discover(
    sources: Sequence[str | os.PathLike[str]], exclude: Path, formats: Collection[str], only: bool = True
) -> Iterator[SourceFile | Skipped]:
    """Every file of the sources, once. The folder ``exclude`` (the index itself) is never read; ``formats`` are the ends
    of names that can be read.

    Raises InvalidInput for a source that is not there, or is a file of no known format and the ``only`` one of a build.
    """
    for source in sources:
        root = whole(source)
        if root.is_dir():
            yield from _walk(root, whole(exclude), formats)
            continue
        outcome = file(root, root, formats)
        if not isinstance(outcome, Skipped):
            yield outcome
        elif only or not os.path.exists(root):
            is_question = outcome.reason.endswith("?")  # a name near it is all there is to say
            raise InvalidInput(f"{source} {outcome.reason}{'' if is_question else f'. Expected {expected(formats)}.'}")
        else:
            yield replace(outcome, unreadable=True)


def expected(formats: Collection[str]) -> str:
    """What may be named, in words: the most usual formats where there are many."""
    endings = list(formats)[:_SHOWN]
    more = (
        f" or another of {len(formats)} (listed in the documentation under Files and folders)" if len(formats) > _SHOWN else ""
    )
    return f"a folder or a file that ends in {', '.join(endings)}{more}"


def nothing_found(there: Survey, formats: Collection[str]) -> InvalidInput:
    """For a first build, which has nothing to make an index of."""
    looked = ", ".join(f"{path} ({root.unreadable})" if root.unreadable else str(path) for path, root in there.roots.items())
    return InvalidInput(f"found no file to index in {looked}. Expected {expected(formats)}. No index was made.")


def whole(source: str | os.PathLike[str]) -> Path:
    """The whole path, without links above the file or folder itself, which keeps the name it was given by."""
    above, name = os.path.split(os.fspath(source).rstrip("/"))
    if name in ("", ".", ".."):
        return Path(os.path.realpath(source))
    return Path(os.path.realpath(above or os.curdir), name)


def survey(sources: Sequence[str | os.PathLike[str]], exclude: Path, formats: Collection[str]) -> Survey:
    """Raises InvalidInput as ``discover``, and for a source that is an index."""
    bytes_, roots = 0, {}
    for source in sources:
        if os.path.exists(os.path.join(source, INDEX)):
            raise InvalidInput(f"{source} is an index (it holds {INDEX}), expected documents: name what it was built from.")
        root = roots[whole(source)] = Root()
        for outcome in discover([source], exclude, formats, len(sources) == 1):
            if isinstance(outcome, SourceFile):
                bytes_ += outcome.size
                root.files += 1
            elif outcome.path == whole(source):
                root.unreadable = outcome.reason
    return Survey(bytes_, roots)


def _walk(root: Path, exclude: Path, formats: Collection[str]) -> Iterator[SourceFile | Skipped]:
    waiting, whole_root = [root], os.path.realpath(root)
    while waiting:
        path = waiting.pop()
        if not os.path.isdir(path):  # nor is a link to itself
            found = file(path, root, formats)
            if isinstance(found, SourceFile) and path.is_symlink() and (target := _within(path, whole_root, formats)):
                found = Skipped(path, f"is a link to {target}, which is read itself")
            yield found
        elif path != exclude and (path == root or not path.is_symlink()):
            try:
                names = sorted(os.listdir(path), reverse=True)
            except OSError as error:
                yield Skipped(path, f"cannot be read: {error.strerror}", unreadable=True)
                continue
            if path == root or INDEX not in names:  # another index
                waiting += [path / name for name in names if not name.startswith(".")]


def _within(link: Path, root: str, formats: Collection[str]) -> str:
    """The target of a link, from the root, if it is a file that is read for itself."""
    target = Path(os.path.realpath(link))
    if not target.is_relative_to(root) or not target.name.lower().endswith(tuple(formats)):
        return ""
    inner = target.relative_to(root)
    return "" if any(part.startswith(".") for part in inner.parts) else str(inner)


def file(path: Path, root: Path, formats: Collection[str]) -> SourceFile | Skipped:
    """What is at a path."""
    try:
        status = path.stat()
    except FileNotFoundError:
        near = nearest(path).replace("Did you mean", ": did you mean").rstrip()
        return Skipped(path, f"does not exist{near}" if not path.is_symlink() else "is a link to nothing")
    except OSError as error:
        return Skipped(path, f"cannot be read: {error.strerror}", unreadable=True)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "is not a regular file")
    if not path.name.lower().endswith(tuple(formats)):
        return Skipped(path, "is of no known format" + (f" ({path.suffix})" if path.suffix else ""))
    stamp = f"{status.st_size}:{status.st_mtime_ns}"
    return SourceFile(path, root, status.st_size, stamp, status.st_ctime_ns, f"{status.st_dev}:{status.st_ino}")

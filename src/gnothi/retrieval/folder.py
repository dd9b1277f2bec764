"""``gnothi-index.json``: what makes a folder an index of ours, and which version. Small, written atomically."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from gnothi.errors import GnothiError, IndexUnavailable
from gnothi.retrieval.analysis import ANALYSER, FORMAT_VERSION
from gnothi.version import __version__

FILE = "gnothi-index.json"
_PREFIX = "gnothi-"
_KIND = f"{_PREFIX}bm25"


@dataclass(frozen=True, slots=True)
class Manifest:
    """``complete`` is False while a build is under way, and stays so when it was interrupted. ``content`` changes with every
    passage put or deleted, and is the same after the same ones in the same order; empty where nobody kept count."""

    passages: int = 0
    complete: bool = False
    content: str = ""
    format: str = _KIND
    version: int = FORMAT_VERSION
    analyser: str = ANALYSER
    created_by: str = __version__


def kind_of(path: str | os.PathLike[str]) -> str:
    """What the folder says of itself that it holds: ``bm25``, ``graph``; empty for a folder that does not say."""
    try:
        raw = json.loads((Path(path) / FILE).read_bytes())
    except (OSError, ValueError):
        return ""
    return str(raw.get("format", "")).removeprefix(_PREFIX) if isinstance(raw, dict) else ""


def read_manifest(path: Path) -> Manifest:
    """Raises IndexUnavailable for a folder that is not there, not ours, or of another version."""
    try:
        raw = json.loads((path / FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise IndexUnavailable(_absent(path)) from None
    except OSError as error:
        raise IndexUnavailable(f"the index {path} cannot be read: {error.strerror}. Check its permissions.") from None
    except ValueError:
        raise IndexUnavailable(f"{path / FILE} is damaged: got something that is not JSON. {_REBUILD}") from None
    if not isinstance(raw, dict) or raw.get("format") != _KIND:
        found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise IndexUnavailable(f"{path} is not a BM25 index of Gnothi: got format {found!r}, expected {_KIND!r}. {_REBUILD}")
    if raw.get("version") != FORMAT_VERSION:
        raise IndexUnavailable(
            f"the index {path} has format version {raw.get('version')!r} (made by Gnothi {raw.get('created_by', '?')}), "
            f"expected version {FORMAT_VERSION}. {_REBUILD}"
        )
    try:
        return Manifest(
            passages=int(raw["passages"]),
            complete=bool(raw["complete"]),
            content=str(raw.get("content", "")),
            analyser=str(raw["analyser"]),
            created_by=str(raw["created_by"]),
        )
    except (KeyError, TypeError, ValueError):
        raise IndexUnavailable(f"{path / FILE} is damaged: a field is missing or of the wrong type. {_REBUILD}") from None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replaces the file in one step: a reader sees the old one or the new one, whenever the power goes."""
    temporary = path / (FILE + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path / FILE)


def prepare(path: Path) -> Manifest:
    """Make ``path`` ready for a writer: an existing index, or a new folder with a manifest. A folder of others is refused."""
    if path.exists() and not path.is_dir():
        raise IndexUnavailable(f"{path} is a file, expected a folder for the index. Choose another --out.")
    if not (path / FILE).exists():
        path.mkdir(parents=True, exist_ok=True)
        strangers = sorted(name for name in os.listdir(path) if not name.startswith(FILE))
        if strangers:
            raise IndexUnavailable(
                f"{path} is not an index of Gnothi and not empty: it holds {strangers[0]!r}. "
                "Choose a new or empty folder; nothing was changed."
            )
        write_manifest(path, Manifest())
    return read_manifest(path)


def _absent(path: Path) -> str:
    if not path.exists():
        return f"there is no index at {path}. Build one with `gnothi index build SOURCE... --out {path}`."
    if not path.is_dir():
        return f"{path} is a file, expected the folder of an index. Build one with `gnothi index build {path} --out FOLDER`."
    return f"{path} is not an index of Gnothi: it has no {FILE}. Build one with `gnothi index build SOURCE... --out FOLDER`."


_REBUILD = "Build it again into a new folder with: gnothi index build SOURCE... --out FOLDER"

_FULL = re.compile(r"(os error|errno) (28|122|27)\b|no space left|quota|file too large|disk is full", re.IGNORECASE)
_PROBE_BYTES = 1 << 20


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Failures to write inside the block as IndexUnavailable, a full disk told from others."""
    try:
        yield
    except GnothiError:
        raise
    except BaseException as error:
        if not isinstance(error, ValueError | OSError | sqlite3.Error) and not is_panic(error):
            raise
        raise IndexUnavailable(_write_failure(path, error)) from error


def is_panic(error: BaseException) -> bool:
    """Tantivy may panic on damaged files, which Python sees as a BaseException of a class that cannot be imported."""
    return type(error).__name__ == "PanicException"


def _write_failure(path: Path, error: BaseException) -> str:
    cause: BaseException = error if _FULL.search(str(error)) else _probe(path) or error
    if _FULL.search(str(cause)):
        return (
            f"the disk is full (or a quota reached) at {path}: {cause}. What was committed before is intact and can be "
            "searched. Free some space and run the same command again: it goes on from there."
        )
    return (
        f"the index {path} cannot be written: {cause}. What was committed before is intact. Check the folder's permissions, or "
        "build into a new folder."
    )


def _probe(path: Path) -> OSError | None:
    """What happens to a small file there. Tantivy's threads die of an error without saying which."""
    file = path / ".gnothi-probe"
    try:
        file.write_bytes(bytes(_PROBE_BYTES))
    except OSError as error:
        return error
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)
    return None

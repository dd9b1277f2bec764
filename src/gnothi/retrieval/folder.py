"""``gnothi-index.json``: what makes a folder an index of ours, and which version. Small, written atomically."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import MALFORMED, GnothiError, IndexUnavailable, InvalidSetting
from gnothi.files import nearest, regular
from gnothi.retrieval.analysis import FORMAT_VERSION, Fields, as_fields
from gnothi.retrieval.languages import DEFAULT, named
from gnothi.retrieval.stores import Damaged
from gnothi.version import __version__

FILE = "gnothi-index.json"
_PREFIX = "gnothi-"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a folder of ours may hold: how its manifest names it, and how messages do. ``build`` makes one; ``anew`` says how to
    replace one, unless it is built again."""

    format: str
    version: int
    noun: str
    title: str
    build: str
    anew: str = ""


INDEX = Kind("gnothi-bm25", FORMAT_VERSION, "index", "an index", "gnothi index build {} --out {}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """``complete`` is False while a build is under way, and stays so when it was interrupted. ``content`` changes with every
    passage put or deleted, and is the same after the same ones in the same order; empty where nobody kept count.
    ``language`` is that of its Latin words, ``fields`` how title and text count."""

    passages: int = 0
    complete: bool = False
    content: str = ""
    format: str = INDEX.format
    version: int = FORMAT_VERSION
    language: str = DEFAULT
    fields: Fields = "cross"
    created_by: str = __version__


def kind_of(path: str | os.PathLike[str]) -> str:
    """What the folder says of itself that it holds: ``bm25``, ``graph``; empty for a folder that does not say."""
    try:
        raw = json.loads(regular(Path(path) / FILE).read_bytes())
    except (OSError, *MALFORMED):
        return ""
    return str(raw.get("format", "")).removeprefix(_PREFIX) if isinstance(raw, dict) else ""


def read_manifest(path: Path) -> Manifest:
    """Raises IndexUnavailable for a folder that is not there, not ours, or of another version."""
    raw = read_fields(path, INDEX)
    try:
        return Manifest(
            passages=int(raw["passages"]),
            complete=bool(raw["complete"]),
            content=str(raw.get("content", "")),
            language=named(raw["language"]),
            fields=as_fields(raw.get("fields", "cross")),
            created_by=str(raw["created_by"]),
        )
    except (*MALFORMED, InvalidSetting):
        raise damaged(path, INDEX, f"a field of {FILE} is missing or of the wrong type") from None


def prepare(path: Path, language: str = "", fields: str = "") -> Manifest:
    """``prepare_folder`` for an index. Raises InvalidSetting for another language, or other fields, than it was begun with."""
    prepare_folder(path, INDEX, Manifest(language=language or DEFAULT, fields=as_fields(fields or "cross")))
    manifest = read_manifest(path)
    if language not in ("", manifest.language):
        raise InvalidSetting(
            f"<--language>: got {language!r}, and the index {path} was begun with {manifest.language!r}; expected the same. "
            "Leave <--language> out, or build into a new folder."
        )
    if fields not in ("", manifest.fields):
        raise InvalidSetting(
            f"<--fields>: got {fields!r}, and the index {path} was begun with {manifest.fields!r}. Leave <--fields> out, or "
            "build into a new folder."
        )
    return manifest


def read_fields(path: Path, kind: Kind) -> dict[str, Any]:
    """What the manifest says. Raises IndexUnavailable where there is none of this kind and version."""
    try:
        raw = json.loads(regular(path / FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise IndexUnavailable(_absent(path, kind)) from None
    except OSError as error:
        raise IndexUnavailable(
            f"the {kind.noun} {path} cannot be read: {FILE}: {error.strerror}. Check the folder and its permissions."
        ) from None
    except MALFORMED:
        raise damaged(path, kind, f"{FILE} is not JSON") from None
    format_ = raw.get("format") if isinstance(raw, dict) else None
    if format_ != kind.format:
        got = "no format" if format_ is None else f"the format {format_!r}"
        raise IndexUnavailable(
            f"{path} is not {kind.title} of Gnothi: its {FILE} names {got}, expected {kind.format!r}. {_anew(kind)}"
        )
    if raw.get("version") != kind.version:
        raise IndexUnavailable(
            f"the {kind.noun} {path} has format version {raw.get('version') or '(none)'} (made by Gnothi "
            f"{raw.get('created_by', '?')}), expected version {kind.version}. {_anew(kind)}"
        )
    return dict(raw)


def write_manifest(path: Path, manifest: Any) -> None:
    """Replaces the file in one step: a reader sees the old one or the new one, whenever the power goes."""
    write_whole(path / FILE, json.dumps(asdict(manifest), indent=1, ensure_ascii=False))


def write_whole(file: Path, text: str) -> None:
    """All of the text, on the disk, or the file as it was."""
    temporary = file.with_name(file.name + ".new")
    with temporary.open("w", encoding="utf-8") as new:
        new.write(text)
        new.flush()
        os.fsync(new.fileno())
    temporary.replace(file)


def read_begun(file: Path) -> tuple[set[str], set[str]]:
    """What ``write_begun`` wrote; nothing where there is no such file. Raises ValueError or OSError."""
    saved = json.loads(file.read_bytes()) if file.exists() else {"begun": [], "lost": []}
    return set(map(str, saved["begun"])), set(map(str, saved["lost"]))


def write_begun(file: Path, begun: Iterable[str], lost: Iterable[str]) -> None:
    write_whole(file, json.dumps({"begun": sorted(begun), "lost": sorted(lost)}))


def prepare_folder(path: Path, kind: Kind, empty: Any) -> None:
    """Make ``path`` ready for a build: an existing folder of ours, or a new one with the manifest ``empty``. A folder of others
    is refused."""
    if path.exists() and not path.is_dir():
        raise InvalidSetting(f"{path} is a file, expected a folder for the {kind.noun}. Choose another <--out>.")
    if not (path / FILE).exists():
        path.mkdir(parents=True, exist_ok=True)
        names = sorted(os.listdir(path))
        strangers = [name for name in names if not name.startswith(FILE)]
        if strangers and FILE not in names:  # which another build, begun just now, may have made
            raise IndexUnavailable(
                f"{path} is not {kind.title} of Gnothi and not empty: it holds {strangers[0]!r}. "
                "Choose a new or empty folder; nothing was changed."
            )
        _begin(path, empty)


def _begin(path: Path, empty: Any) -> None:
    """The first manifest; of two builds that begin together one writes it. Nobody holds the folder yet."""
    own = path / f"{FILE}.{os.getpid()}.new"
    try:
        write_whole(own, json.dumps(asdict(empty), indent=1, ensure_ascii=False))
        try:
            os.link(own, path / FILE)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            own.replace(path / FILE)
    finally:
        own.unlink(missing_ok=True)


def damaged(path: Path, kind: Kind, what: str) -> IndexUnavailable:
    return IndexUnavailable(f"the {kind.noun} {path} is damaged: {what}. {_anew(kind)}")


def _anew(kind: Kind) -> str:
    return kind.anew or f"Build it again into a new folder with `{kind.build.format('SOURCE...', 'FOLDER')}`."


def _absent(path: Path, kind: Kind) -> str:
    source, out = "SOURCE...", "FOLDER"
    if not path.exists():
        problem, out = f"there is no {kind.noun} at {path}", str(path)
    elif not path.is_dir():
        problem, source = f"{path} is a file, expected the folder of {kind.title}", str(path)
    else:
        problem = f"{path} is not {kind.title} of Gnothi: it has no {FILE}"
    near = "" if path.exists() else nearest(path)
    return f"{problem}. {near}Build one with `{kind.build.format(source, out)}`."


_FULL = re.compile(r"(os error|errno) (28|122|27)\b|no space left|quota|file too large|disk is full", re.IGNORECASE)
_PROBE_BYTES = 1 << 20


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Failures to write inside the block as IndexUnavailable, a full disk distinguished from others."""
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
    if isinstance(error, Damaged):
        return f"the index {path} cannot be written: {error}. Build it from its documents again, into a new folder."
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

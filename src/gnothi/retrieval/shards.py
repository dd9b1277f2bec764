"""Several folders of passages as one index, with the ranking of one.

A folder of tantivy's is a list of segments, and its BM25 adds up document frequencies, numbers of passages and lengths over the
segments before it scores one of them. So the segments of all shards, listed together, are one index: nothing is scored again
or merged, and whatever the files hold is shared with other processes. A folder of links holds the list only while it is opened:
then the files are mapped into memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import tantivy

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.files import utf8
from gnothi.retrieval import analysis, stores
from gnothi.retrieval.folder import Manifest
from gnothi.types import ScoredPassage

Stamps = tuple[tuple[int, int], ...]
"""One for each folder; changes with every commit."""

_META = "meta.json"
_ATTEMPTS = 5
_WAITS = (0.0, 0.01, 0.1, 0.5, 2.0)  # seconds
_READ_ONLY = re.compile(r"Lockfile.*(code: (13|30)\b|permission denied|read-only)", re.IGNORECASE)


def shards(folder: Path) -> list[Path]:
    """The folders in ``folder``, by name, each to be an index; those whose name starts with a dot are left out. Raises
    IndexUnavailable where there is none."""
    try:
        folders = sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError as error:
        raise IndexUnavailable(f"the folder of shards {folder} cannot be read: {error.strerror}. Check its name.") from None
    if not folders:
        raise IndexUnavailable(
            f"{folder} holds no folders, expected one or more indexes in it. Build each with "
            f"`gnothi index build SOURCE... --out {folder / 'NAME'}`."
        )
    return folders


def commit_stamps(folders: Sequence[Path]) -> Stamps:
    """Raises IndexUnavailable for a folder that is gone."""
    return tuple(map(_stamp, folders))


def common(manifests: Mapping[Path, Manifest]) -> tuple[str, analysis.Fields]:
    """Language and fields of the indexes in these folders. Raises InvalidSetting where they have several: a word has one stem
    and one rarity in a search."""
    (first, manifest), *others = manifests.items()
    for folder, other in others:
        for flag, ours, theirs in (("language", manifest.language, other.language), ("fields", manifest.fields, other.fields)):
            if theirs != ours:
                raise InvalidSetting(
                    f"shards are searched as one index: {first} was built with <--{flag} {ours}>, {folder} with "
                    f"<--{flag} {theirs}>. Build one of them again with the other's."
                )
    return manifest.language, manifest.fields


def open_engine(folders: Sequence[Path], language: str) -> tantivy.Index:
    """Tantivy takes a lock in a folder even to read. Where that is not allowed, links to the files serve as for shards."""
    if len(folders) == 1:
        try:
            return _opened(folders[0], language)
        except ValueError as error:
            if not _READ_ONLY.search(str(error)):
                raise
    for _ in range(_ATTEMPTS - 1):
        before = commit_stamps(folders)
        try:
            return _linked(folders, language)
        except (ValueError, OSError):
            if commit_stamps(folders) == before:
                raise
    return _linked(folders, language)  # writers commit, and take away files, as fast as they are linked


def check_distinct(passages: Sequence[ScoredPassage], name: str) -> None:
    """Raises InvalidSetting for an id that two shards hold: it would be found, and count, twice."""
    ids: set[str] = set()
    for scored in passages:
        if scored.passage.id in ids:
            raise InvalidSetting(
                f"the passage id {scored.passage.id!r:.60} is in two shards of {name}: an id names one passage. Build the "
                "shards from files that have no id in common."
            )
        ids.add(scored.passage.id)


def _linked(folders: Sequence[Path], language: str) -> tantivy.Index:
    metas = [json.loads((folder / _META).read_bytes()) for folder in folders]
    try:
        segments = {segment["segment_id"]: segment for meta in metas for segment in meta["segments"]}
        whole = {**metas[0], "segments": list(segments.values()), "opstamp": max(meta["opstamp"] for meta in metas)}
        number = sum(len(meta["segments"]) for meta in metas)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{_META} lacks {error}") from None
    if len(segments) < number:
        raise InvalidSetting(
            f"shards {', '.join(str(folder) for folder in folders)}: two are the same index, or one is a copy of another. "
            "Leave one out: its passages would count twice."
        )
    with _passing_folder() as links:
        for folder in folders:
            for file in folder.iterdir():
                if file.suffix in (".lock", ".json", ".new"):
                    continue
                (links / file.name).unlink(missing_ok=True)  # the ledgers, which each folder has
                (links / file.name).symlink_to(file.absolute())
        (links / _META).write_text(json.dumps(whole), encoding="utf-8")
        return _opened(links, language)


@contextmanager
def _passing_folder() -> Iterator[Path]:
    """Gone afterwards. A thread of the engine's may put a lock into it while it is removed: then that is tried again. A folder
    of links that stays does no harm."""
    folder = Path(tempfile.mkdtemp(prefix="gnothi-index-"))
    try:
        yield folder
    finally:
        for wait in _WAITS:
            time.sleep(wait)
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break


def _opened(folder: Path, language: str) -> tantivy.Index:
    stores.check(folder)
    index = tantivy.Index.open(utf8(folder))
    analysis.register(index, language)
    index.config_reader("manual")
    return index


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path / _META)
    except OSError:
        raise IndexUnavailable(f"the index {path} is gone: its meta.json cannot be read. Build it again.") from None
    return (status.st_mtime_ns, status.st_ino)

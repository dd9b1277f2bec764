"""What a build writes into: a folder of ours, or a table, a collection or an index of a search engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.ledger import FILE, FolderLedger, Ledger
from gnothi.retrieval.registry import RETRIEVERS
from gnothi.retrieval.writer import BEGUN, IndexWriter, Put
from gnothi.schemes import as_scheme, split, unknown
from gnothi.types import Passage

Written = Sequence[tuple[Passage, str]]
"""Passages, each with its origin: the version of the file that it was read from."""


class Writer(Protocol):
    """Nothing need be visible, or safe from a kill, before ``commit``. ``covered`` counts passages that took the place of
    others, by the origins of both."""

    covered: Counter[tuple[str, str]]

    @property
    def passages(self) -> int:
        """Number of passages as of the last commit."""
        ...

    @property
    def pending_bytes(self) -> int:
        """Put since the last commit, about."""
        ...

    def put_all(self, passages: Written) -> list[Put]:
        """Add each, or replace the one of the same id, unless it stands there already, from the same origin; in order."""
        ...

    def delete_origin(self, origin: str) -> None:
        """Delete every passage put with this origin."""
        ...

    def commit(self, complete: bool = True) -> None:
        """Make what was put and deleted visible and durable. ``complete`` False: more of this build follows."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    writer: Writer
    ledger: Ledger
    language: str = ""
    """Of its Latin words; empty where that is the server's affair."""


def check_built(out: str | os.PathLike[str]) -> None:
    """Raises IndexUnavailable where no build has written to a folder, or to what SCHEME:ARGUMENT names."""
    name, argument = split(RETRIEVERS, os.fspath(out))
    if not name:
        read_manifest(Path(out))
        return
    scheme = as_scheme(RETRIEVERS.find(name))
    if scheme.fingerprint is not unknown and not scheme.fingerprint(argument):
        raise IndexUnavailable(f"{os.fspath(out)}: nothing that `gnothi index build` filled is there. Check the name.")


def target(out: str | os.PathLike[str], memory_mb: int, language: str = "", fields: str = "") -> AbstractContextManager[Target]:
    """A folder, or what SCHEME:ARGUMENT names. Raises UnknownName, or InvalidSetting for a kind that is only searched, or has a
    ``language`` or ``fields`` of its own; entering it raises IndexUnavailable."""
    name, argument = split(RETRIEVERS, os.fspath(out))
    if not name:
        return _folder(Path(out), memory_mb, language, fields)
    scheme = as_scheme(RETRIEVERS.find(name))
    if scheme.target is None:
        raise InvalidSetting(
            f"{os.fspath(out)!r} is only searched: expected an index that can be written to, a folder or PostgreSQL's, say."
        )
    if language:
        raise InvalidSetting(
            f"<--language> is for an index in a folder: {name}:... cuts and stems words by its own settings. Leave it out."
        )
    if fields:
        raise InvalidSetting(
            "<--fields> is for an index in a folder. Leave it out; Elasticsearch and OpenSearch take it where they are "
            f'searched: fields = "{fields}" in the file that describes the index.'
        )
    opened: AbstractContextManager[Target] = scheme.target(argument)
    return opened


@contextmanager
def _folder(folder: Path, memory_mb: int, language: str, fields: str) -> Iterator[Target]:
    if folder.is_dir() and not (folder / "meta.json").exists():
        (folder / FILE).unlink(missing_ok=True)  # it tells of passages that are gone
    with IndexWriter(folder, memory_mb, language, fields) as writer, closing(FolderLedger(folder)) as ledger:
        ledger.recover_from(folder / BEGUN)
        yield Target(writer, ledger, writer.language)

"""A table of passages: where it is, and what its columns are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.retrieval.servers.settings import described

ORIGIN = "gnothi_origin"
ERRORS = (ValueError, RuntimeError, OSError)
"""What LanceDB raises, whatever went wrong."""


@dataclass(frozen=True, slots=True)
class Table:
    """``server`` is a folder, or the address of an object store as LanceDB takes it. ``words`` is the column that is searched;
    empty: that of the text. ``prefix`` is put before ids."""

    server: str
    table: str = "passages"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    prefix: str = ""

    def __post_init__(self) -> None:
        for name in ("table", "id", "text"):
            if not getattr(self, name):
                raise InvalidSetting(f"{name} of a table: got an empty text, expected a name.")

    @property
    def name(self) -> str:
        return f"LanceDB {self.server} table {self.table}"

    @property
    def folder(self) -> Path | None:
        """None for an object store."""
        return None if "://" in self.server else Path(self.server).expanduser()

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.id, self.text, self.title) if name]

    def connect(self) -> Any:
        """Raises IndexUnavailable, or MissingDependency without lancedb."""
        try:
            import lancedb
        except ImportError as error:
            raise MissingDependency("lancedb", "lancedb", "<--index lancedb:...>") from error
        try:
            return lancedb.connect(str(self.folder or self.server))
        except ERRORS as error:
            raise self.refused(error) from None

    def refused(self, error: Exception) -> IndexUnavailable:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        return IndexUnavailable(f"{self.name}: LanceDB says: {said}. Check the names in <--index lancedb:...>, and the disk.")


def tables(argument: str) -> list[Table]:
    """What ``lancedb:ARGUMENT`` names. Raises InvalidSetting, InvalidInput or UnknownName."""
    return described(Table, argument, "lancedb")

"""A table of passages: where it is, and what its columns are called."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.files import home_expanded
from gnothi.retrieval.servers.questions import By, Distance, check_encoder
from gnothi.retrieval.servers.settings import described

ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
ERRORS = (ValueError, RuntimeError, OSError)
"""What LanceDB raises, whatever went wrong."""


@dataclass(frozen=True, slots=True)
class Table:
    """``server`` is a folder, or the address of an object store as LanceDB takes it; ``endpoint`` and ``region`` say which one
    answers to ``s3://``. Its keys come from the environment alone. ``words`` is the column that is searched;
    empty: that of the text. ``vectors`` is a column of lists of one length. ``prefix`` is put before ids."""

    server: str
    table: str = "passages"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    by: By = "words"
    vectors: str = "gnothi_vector"
    encoder: str = ""
    distance: Distance = "inner"
    prefix: str = ""
    endpoint: str = ""
    region: str = ""

    def __post_init__(self) -> None:
        scheme, mark, rest = self.server.partition("://")
        if mark and "@" in rest.partition("/")[0]:
            raise InvalidSetting(
                "an address with keys: runs note the name of their index. Put them into the environment variables "
                f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; expected an address as {scheme}://BUCKET/FOLDER."
            )
        if not mark and (self.endpoint or self.region):
            raise InvalidSetting(
                f"endpoint and region are those of an object store: got them with the folder {self.server!r}, expected "
                's3://BUCKET/FOLDER as server, or "" for both.'
            )
        for name in ("table", "id", "text"):
            if not getattr(self, name):
                raise InvalidSetting(f"{name} of a table: got an empty text, expected a name.")
        check_encoder(self)

    @property
    def name(self) -> str:
        return f"LanceDB {self.server} table {self.table}"

    @property
    def folder(self) -> Path | None:
        """None for an object store."""
        return None if "://" in self.server else home_expanded(self.server)

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
            return lancedb.connect(str(self.folder or self.server), storage_options=self._store())
        except ERRORS as error:
            raise self.refused(error) from None

    def _store(self) -> dict[str, str] | None:
        """What LanceDB is told of an object store beside what it finds in the environment."""
        if self.folder is not None:
            return None
        given = {"endpoint": self.endpoint, "region": self.region}
        plain = {"allow_http": "true"} if self.endpoint.startswith("http://") else {}
        return {name: value for name, value in given.items() if value} | plain

    def refused(self, error: Exception) -> IndexUnavailable:
        said = _reason(error).rstrip(".")
        for value in filter(None, map(os.environ.get, _SECRETS)):  # a store may repeat what it was given
            said = said.replace(value, "...")
        where = "the disk" if self.folder is not None else "the object store: its endpoint, region and keys"
        return IndexUnavailable(f"{self.name}: LanceDB says: {said}. Check the names in <--index lancedb:...>, and {where}.")


def _reason(error: Exception) -> str:
    """The first line, or of a store's long one the part that says why: what the store answered, or what the network did."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    reason = re.search(r"<Message>(.*?)</Message>", said) or re.search(r'message: "(.*?)"', said)
    return f"{said.partition(':')[0]}: {reason[1]}" if reason else said


def tables(argument: str) -> list[Table]:
    """What ``lancedb:ARGUMENT`` names. Raises InvalidSetting, InvalidInput or UnknownName."""
    return described(Table, argument, "lancedb")

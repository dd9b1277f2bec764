"""Kinds of servers as the tests of all of them see one: how a table is named, read without Gnothi, and spoilt."""

from __future__ import annotations

import importlib.util
import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gnothi.types import Passage
from tests.retrieval.servers.engine import Engine
from tests.retrieval.servers.fake import Fake, Shelf

Rows = list[tuple[int, str | None]]


class Backend(ABC):
    """``size``: passages, notes and the batch of a build that is killed."""

    scheme: str
    key = "table"
    size: ClassVar[tuple[int, int, str]] = (2500, 30, "200")

    def __init__(self, folder: Path, server: str) -> None:
        self.folder, self.server = folder, server

    def spec(self, table: str) -> str:
        return f"{self.scheme}:{self.server}#{table}"

    def described(self, *tables: str, more: str = "") -> str:
        """By a file: a server for each table."""
        parts = [more, *(f'[[servers]]\nserver = "{self.server}"\n{self.key} = "{table}"' for table in tables)]
        (self.folder / "index.toml").write_text("\n".join(parts))
        return f"{self.scheme}:{self.folder / 'index.toml'}"

    @abstractmethod
    def rows(self, table: str) -> list[dict[str, Any]]:
        """As they stand there; none where there is no table."""

    def stored(self, table: str) -> dict[str, Passage]:
        found = [Passage(one["id"], one["text"], one["title"], self.metadata(one)) for one in self.rows(table)]
        assert len({one.id for one in found}) == len(found)
        return {one.id: one for one in found}

    def metadata(self, row: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(row["gnothi_metadata"]))

    def killed(self, table: str) -> dict[str, Passage]:
        """What a kill left."""
        return self.stored(table)

    @abstractmethod
    def theirs(self, table: str, rows: Rows) -> str:
        """Makes a table of others, of columns nr and body; how a file describes it."""

    @abstractmethod
    def spoil(self, table: str) -> None:
        """Makes it one of an earlier version."""

    @abstractmethod
    def classes(self) -> tuple[type, type]:
        """The writer and the ledger of a build."""


class Lance(Backend):
    scheme = "lancedb"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, str(folder / "lance"))

    def _database(self) -> Any:
        import lancedb

        return lancedb.connect(self.server)

    def rows(self, table: str) -> list[dict[str, Any]]:
        database = self._database()
        return list(database.open_table(table).to_arrow().to_pylist()) if table in database.list_tables().tables else []

    def theirs(self, table: str, rows: Rows) -> str:
        self._database().create_table(table, [{"nr": number, "body": text} for number, text in rows])
        return 'id = "nr"\ntext = "body"\ntitle = ""\nwords = ""\n'

    def spoil(self, table: str) -> None:
        self._database().open_table(table).drop_columns(["gnothi_metadata"])

    def classes(self) -> tuple[type, type]:
        from gnothi.retrieval.servers.lancedb_build import LanceLedger, LanceWriter

        return LanceWriter, LanceLedger


class Postgres(Backend):
    scheme = "postgres"

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder, engine.server)
        self._execute("DROP SCHEMA public CASCADE")
        self._execute("CREATE SCHEMA public")

    def _execute(self, query: Any) -> list[Any]:
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(f"postgresql:{self.server}", autocommit=True, row_factory=dict_row) as connection:
            found = connection.execute(query)
            return found.fetchall() if found.description else []

    def rows(self, table: str) -> list[dict[str, Any]]:
        from psycopg import sql

        if not self._execute(sql.SQL("SELECT to_regclass({}) AS one").format(sql.Literal(table)))[0]["one"]:
            return []
        return self._execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))

    def stored(self, table: str) -> dict[str, Passage]:
        return {key: Passage(one.id, one.text, one.title, dict(one.metadata)) for key, one in super().stored(table).items()}

    def metadata(self, row: dict[str, Any]) -> dict[str, Any]:
        return dict(row["gnothi_metadata"])

    def killed(self, table: str) -> dict[str, Passage]:
        """After the server has noticed that the one who held its lock is gone."""
        found, deadline = self.stored(table), time.monotonic() + 120
        while self._execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return found

    def theirs(self, table: str, rows: Rows) -> str:
        from psycopg import sql

        self._execute(sql.SQL("CREATE TABLE {} (nr int, body text)").format(sql.Identifier(table)))
        for row in rows:
            self._execute(sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(table), sql.SQL(", ").join(row)))
        return 'id = "nr"\ntext = "body"\ntitle = ""\nwords = ""\n'

    def spoil(self, table: str) -> None:
        from psycopg import sql

        self._execute(sql.SQL("ALTER TABLE {} DROP COLUMN gnothi_terms").format(sql.Identifier(table)))

    def classes(self) -> tuple[type, type]:
        from gnothi.retrieval.servers.postgres_build import PostgresLedger, PostgresWriter

        return PostgresWriter, PostgresLedger


class Lucene(Backend):
    key = "index"
    size = (500, 6, "5")

    def __init__(self, folder: Path, fake: Fake) -> None:
        super().__init__(folder, fake.url)
        self.fake, self.scheme = fake, fake.engine

    def spec(self, table: str) -> str:
        return f"{self.scheme}:{self.server}/{table}"

    def rows(self, table: str) -> list[dict[str, Any]]:
        """What was written can be searched, and lies there once."""
        if (shelf := self.fake.shelves.get(table)) is None:
            return []
        assert shelf.visible == shelf.documents
        return list(shelf.documents.values())

    def killed(self, table: str) -> dict[str, Passage]:
        return {one["id"]: Passage(one["id"], one["text"]) for one in self.fake.shelves[table].documents.values()}

    def theirs(self, table: str, rows: Rows) -> str:
        shelf = self.fake.shelves[table] = Shelf({"nr": {"type": "long"}, "body": {"type": "text"}})
        for number, text in rows:
            shelf.put(f"x{number}", {"nr": number, "body": text})
        shelf.refresh()
        return 'id = "nr"\ntext = "body"\ntitle = ""\nwords = ""\n'

    def spoil(self, table: str) -> None:
        del self.fake.shelves[f"{table}-gnothi"].documents["notes"]["version"]

    def classes(self) -> tuple[type, type]:
        from gnothi.retrieval.servers.lucene_build import LuceneLedger, LuceneWriter

        return LuceneWriter, LuceneLedger


LANCE = pytest.mark.skipif(
    importlib.util.find_spec("lancedb") is None,
    reason="lancedb is not installed: `make test-beside` installs it in an environment of its own",
)

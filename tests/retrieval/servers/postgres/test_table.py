"""What can be said of a table without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.retrieval.registry import RETRIEVERS, open_index
from gnothi.retrieval.servers.postgres.table import Table, tables


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"gnothi\[postgres\]"):
        open_index("postgres://localhost/x")
    assert "postgres" in RETRIEVERS.names()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"timeout": 0}, "timeout"),
        ({"connections": 0}, "connections"),
        ({"patience": -1}, "patience"),
        ({"patience": float("nan")}, "patience"),
        ({"table": ""}, "table"),
        ({"text": ""}, "text"),
        ({"by": "both"}, "encoder"),
        ({"by": "vectors", "encoder": "e", "vectors": ""}, "encoder"),
    ],
)
def test_settings_that_cannot_be(more: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        Table("//localhost/x", **more)  # type: ignore[arg-type]


def test_an_address_shows_no_password_and_holds_none(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    (table,) = tables("//me@host:5433/db#wiki")
    assert table.address == "postgresql://me@host:5433/db"
    assert table.name == "host:5433/db table wiki"
    assert tables("dbname=db")[0].name == "the local server/db table passages"
    with pytest.raises(InvalidSetting, match="PGPASSWORD"):
        tables("//me:secret@host/db")
    (tmp_path / "index.toml").write_text('server = "postgresql://me:secret@host/db"')
    assert "secret" not in tables(str(tmp_path / "index.toml"))[0].name
    with pytest.raises(InvalidSetting, match="PostgreSQL says"):
        tables("//host:port/x y")

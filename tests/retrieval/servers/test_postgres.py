"""PostgreSQL: addresses, names that are no SQL, a server killed, frozen or full while others ask it: waited for, refused, or
done without and said so."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gnothi import events, lab
from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.retrieval.build import build
from gnothi.retrieval.registry import RETRIEVERS, open_index
from gnothi.runs.folder import read_rows
from gnothi.testing.conformance.retriever import CORPUS
from gnothi.types import Passage, ScoredPassage
from tests.messages import refused
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.retrieval.servers.backends import Postgres
from tests.retrieval.servers.engine import NEEDED, Engine
from tests.retrieval.servers.test_servers import ENCODED, HERON, NASTY, built, found
from tests.stopping import Stopping

PASSAGES = made_up(7, 200)
QUERIES = [passage.text for passage in PASSAGES]


def marked(test: Any) -> Any:
    return NEEDED(pytest.mark.slow(test))


def described(path: Path, *engines: Engine, table: str, more: str = "") -> str:
    parts = [more, *(f'[[servers]]\nserver = "{engine.server}"\ntable = "{table}"' for engine in engines)]
    (path / "index.toml").write_text("\n".join(parts))
    return f"postgres:{path / 'index.toml'}"


@pytest.fixture
def postgres(engine: Engine, tmp_path: Path) -> Postgres:
    return Postgres(tmp_path, engine)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with refused(MissingDependency):
        open_index("postgres://localhost/x")
    assert "postgres" in RETRIEVERS.names()


@pytest.mark.parametrize(
    "more",
    [
        {"timeout": 0},
        {"connections": 0},
        {"patience": -1},
        {"patience": float("nan")},
        {"table": ""},
        {"text": ""},
        {"by": "both"},
        {"by": "vectors", "encoder": "e", "vectors": ""},
    ],
)
def test_settings_that_cannot_be(more: dict[str, Any]) -> None:
    table = pytest.importorskip("gnothi.retrieval.servers.postgres").Table
    with refused(InvalidSetting):
        table("//localhost/x", **more)


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_new_connection_that_is_given_up_is_closed(monkeypatch: pytest.MonkeyPatch, cancelled: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    from gnothi.retrieval.servers.postgres import Table, connect

    begun, closed = asyncio.Event(), []

    class Connection:
        async def execute(self, *_: object) -> None:
            begun.set()
            if not cancelled:
                raise psycopg.OperationalError("the server went away")
            await asyncio.Event().wait()

        async def close(self) -> None:
            closed.append(self)

    async def made(*_: object, **__: object) -> Connection:
        return Connection()

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", made)
    task = asyncio.create_task(connect(Table("//localhost/x")))
    await begun.wait()
    if cancelled:
        task.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else psycopg.OperationalError):
        await task
    assert len(closed) == 1


def test_an_address_shows_no_password_and_holds_none(tmp_path: Path) -> None:
    tables = pytest.importorskip("gnothi.retrieval.servers.postgres").tables
    (table,) = tables("//me@host:5433/db#wiki")
    assert table.address == "postgresql://me@host:5433/db"
    assert table.name == "host:5433/db table wiki"
    assert tables("dbname=db")[0].name == "the local server/db table passages"
    with refused(InvalidSetting):
        tables("//me:secret@host/db")
    (tmp_path / "index.toml").write_text('server = "postgresql://me:secret@host/db"')
    assert "secret" not in tables(str(tmp_path / "index.toml"))[0].name
    with refused(InvalidSetting):
        tables("//host:port/x y")


@marked
@pytest.mark.parametrize("nasty", NASTY)
async def test_nothing_in_names_is_sql(postgres: Postgres, nasty: str) -> None:
    table = nasty.replace(".", "").replace("\n", "")[:40]  # with what stands beside it, at most 63 bytes
    assert await found(built(postgres, table=table), HERON, 1) == [CORPUS[4]]
    built(postgres, table="victims")
    for name in ("id", "title", "text", "words", "language", "vectors"):
        more = f"by = 'vectors'\n{ENCODED}" if name == "vectors" else ""
        with pytest.raises(IndexUnavailable):
            open_index(postgres.described("victims", more=f"{more}{name} = '''{nasty}'''"))
    assert len(postgres.rows("victims")) == len(CORPUS)


@marked
async def test_a_search_changes_nothing(postgres: Postgres) -> None:
    from gnothi.retrieval.servers.postgres import Server, tables

    (table,) = tables(built(postgres).removeprefix("postgres:"))
    server = Server(table)
    with pytest.raises(IndexUnavailable):
        await server.rows(table.sql("DELETE FROM {table}"), ())
    await server.aclose()


@marked
async def test_text_that_the_server_cannot_hold_is_replaced(postgres: Postgres) -> None:
    for _ in range(2):
        spec = built(postgres, [Passage("a\0b", "A heron\0 stands.", "\0")])
    assert await found(spec, "heron") == [Passage("a\ufffdb", "A heron\ufffd stands.", "\ufffd")]
    assert len(postgres.rows("passages")) == 1


@marked
def test_one_build_at_a_time(postgres: Postgres) -> None:
    from gnothi.retrieval.servers.postgres_build import opened

    with opened(f"{postgres.server}#passages"), pytest.raises(IndexUnavailable):
        built(postgres)


@marked
async def test_two_servers_rank_as_one(engine: Engine, other: Engine, tmp_path: Path) -> None:
    one, two = Postgres(tmp_path, engine), Postgres(tmp_path, other)
    whole = open_index(built(one, PASSAGES, "whole"))
    built(one, PASSAGES[:80], "part")
    built(two, PASSAGES[80:], "part")
    parts = open_index(described(tmp_path, engine, other, table="part"))
    for query in QUERIES[:40]:
        assert await parts.search(query, 10) == await whole.search(query, 10)
    await parts.aclose()
    await whole.aclose()


@marked
def test_the_server_killed_under_a_build(other: Engine, tmp_path: Path) -> None:
    two = Postgres(tmp_path, other)
    source = write_jsonl(tmp_path / "corpus.jsonl", made_up(1, 2500))
    build([source], tmp_path / "folder")
    process = Stopping("tests.retrieval.stopping_build", str(source), two.spec("under"))
    assert process.go(random.Random(1).randint(1, 12))
    other.kill()
    _, errors = process.ended()
    other.start()
    assert "IndexUnavailable" in errors
    Stopping("tests.retrieval.stopping_build", str(source), two.spec("under")).finish()
    assert two.stored("under") == contents(tmp_path / "folder")


@pytest.fixture
def two(engine: Engine, other: Engine, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """The passages on two servers, of which the second is for killing; what is given is put into the file."""
    built(Postgres(tmp_path, engine), PASSAGES[:100], "half")
    built(Postgres(tmp_path, other), PASSAGES[100:], "half")
    yield lambda more="": described(tmp_path, engine, other, table="half", more=more)
    other.freeze(False)
    other.kill()
    other.start()


async def searched(spec: str, queries: list[str]) -> list[tuple[ScoredPassage, ...] | BaseException]:
    retriever = open_index(spec)
    try:
        return await asyncio.gather(*(retriever.search(query, 5) for query in queries), return_exceptions=True)
    finally:
        await retriever.aclose()


@marked
async def test_a_killed_server_is_waited_for(two: Callable[..., str], other: Engine) -> None:
    expected = await searched(two(), QUERIES)
    retriever = open_index(two("patience = 100"))
    tasks = [asyncio.create_task(retriever.search(query, 5)) for query in QUERIES]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    other.kill()
    await asyncio.sleep(0.5)
    assert not all(task.done() for task in tasks)
    await asyncio.to_thread(other.start)
    assert await asyncio.gather(*tasks) == expected
    await retriever.aclose()


@marked
async def test_one_that_stays_away_fails_what_needs_it_and_nothing_wrong_comes_back(
    two: Callable[..., str], other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.patience._NEWS", 0.0)
    expected = await searched(two(), QUERIES)
    retriever = open_index(two("patience = 0.5"))
    tasks = [asyncio.create_task(retriever.search(query, 5)) for query in QUERIES]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    other.kill()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(one) for one in outcomes} == {tuple, IndexUnavailable}
    assert all(one == right for one, right in zip(outcomes, expected, strict=True) if isinstance(one, tuple))
    await asyncio.to_thread(other.start)
    assert await asyncio.gather(*(retriever.search(query, 5) for query in QUERIES)) == expected
    await retriever.aclose()


@marked
async def test_an_optional_one_is_done_without_and_that_is_told(two: Callable[..., str], other: Engine, engine: Engine) -> None:
    spec = two("patience = 0.2\noptional = true")
    other.kill()
    with events.record() as seen:
        outcomes = await searched(spec, QUERIES)
    (first,) = await asyncio.gather(searched(f"postgres:{engine.server}#half", QUERIES))
    assert outcomes == first
    partial = [event for event in seen if isinstance(event, events.Partial)]
    assert len(partial) == len(QUERIES)
    assert partial[0].servers == 2
    assert [name for name, _ in partial[0].lacking] == [f"127.0.0.1:{other.port}/postgres table half"]


@marked
async def test_a_server_that_takes_questions_and_says_nothing(
    two: Callable[..., str], other: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    asked_to_stop: list[object] = []  # it would not hear, and psycopg waits for ten seconds whether it does
    monkeypatch.setattr(psycopg.AsyncConnection, "cancel_safe", lambda *_, **__: asked_to_stop.append(1))
    spec = two("patience = 0")
    with (tmp_path / "index.toml").open("a") as file:
        file.write("\ntimeout = 0.5")  # of the second alone
    retriever = open_index(spec)
    until = time.monotonic() + 120
    while True:  # a busy machine may need longer for a first answer
        try:
            await retriever.search("a", 1)
            break
        except IndexUnavailable:
            assert time.monotonic() < until
    other.freeze(True)
    try:
        with pytest.raises(IndexUnavailable):
            await retriever.search("b", 1)
        assert asked_to_stop == []
    finally:
        other.freeze(False)
    await retriever.aclose()


# A run over questions whose server is killed: it waits, or fails those questions and asks them again; its rows are right.


def running(spec: str, out: Path) -> Stopping:
    command = ["eval", "lab", "--limit", "40", "--method", "rag", "--index", spec, "--concurrency", "4", "--out", str(out)]
    return Stopping("tests.stopping_command", *command)


def rows(out: Path) -> list[dict[str, Any]]:
    return [row.comparable() for row in read_rows(out)]


@marked
@pytest.mark.parametrize("waits", [True, False])
def test_a_run_whose_server_is_killed(engine: Engine, other: Engine, tmp_path: Path, waits: bool) -> None:
    passages = lab.passages()
    table = f"library_{waits}"
    built(Postgres(tmp_path, engine), passages[::2], table)
    built(Postgres(tmp_path, other), passages[1::2], table)
    running(described(tmp_path, engine, other, table=table), tmp_path / "undisturbed").finish()

    spec = described(tmp_path, engine, other, table=table, more=f"patience = {100 if waits else 0.3}")
    killed = running(spec, tmp_path / "killed")
    assert killed.go(5)
    other.kill()
    if waits:
        with ThreadPoolExecutor() as beside:
            ending = beside.submit(killed.finish)
            time.sleep(1)  # it may ask meanwhile
            other.start()
            ending.result()
    else:
        _, errors = killed.ended()
        assert "questions failed" in errors, errors
        other.start()
        failed = [row["error"] for row in rows(tmp_path / "killed") if row["error"]]
        assert {error["type"] for error in failed} == {"IndexUnavailable"}
        assert all("did not answer" in error["message"] for error in failed)
        right = {row["question_id"]: row for row in rows(tmp_path / "undisturbed")}
        assert 0 < len(failed) < 40
        assert all(row["error"] or row == right[row["question_id"]] for row in rows(tmp_path / "killed"))
        running(spec, tmp_path / "killed").finish()
    assert rows(tmp_path / "killed") == rows(tmp_path / "undisturbed")

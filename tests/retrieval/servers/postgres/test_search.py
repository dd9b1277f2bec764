"""Tables of a real PostgreSQL: conformance by words, vectors and both, on one server and two; tables of others; injection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import bare
from tests.retrieval.servers.postgres.conftest import stored
from tests.retrieval.servers.postgres.engine import NEEDED, Engine

pytestmark = [NEEDED, pytest.mark.slow]
Built = Callable[..., str]
LIGHTHOUSE = "Who built the lighthouse of Orvel?"
NASTY = (
    "x'; DROP TABLE victims; --",
    'x"; DROP TABLE victims; --',
    "$$; DROP TABLE victims; $$",
    "\\'; DROP TABLE victims; --",
    "' | 'lighthouse' & !'",
    "%s %(x)s {table} {}",
    "'); SELECT pg_sleep(60); --",
    "a:* & b <-> c | !d",
)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that needs no weights."""
    monkeypatch.setattr(Encoding, "questions", lambda _: words.questions)
    monkeypatch.setattr(Encoding, "passages", lambda _: words.passages)


def described(path: Path, *engines: Engine, tables: tuple[str, ...], more: str = "") -> str:
    parts = [more]
    for engine, table in zip(engines, tables, strict=True):
        parts.append(f'[[servers]]\nserver = "{engine.server}"\ntable = "{table}"')
    file = path / "index.toml"
    file.write_text("\n".join(parts))
    return f"postgres:{file}"


async def found(spec: str, query: str, k: int = 3) -> list[Passage]:
    retriever = open_index(spec)
    try:
        return [bare(one.passage) for one in await retriever.search(query, k)]
    finally:
        await retriever.aclose()


class TestOneServer(RetrieverConformance):
    @pytest.fixture
    async def retriever(self, built: Built) -> AsyncIterator[Retriever]:
        retriever = open_index(built())
        yield retriever
        await retriever.aclose()


class TestTwoServers(RetrieverConformance):
    @pytest.fixture
    async def retriever(self, built: Built, engine: Engine, other: Engine, tmp_path: Path) -> AsyncIterator[Retriever]:
        built(CORPUS[::2], table="even")
        built(CORPUS[1::2], on=other, table="odd")
        retriever = open_index(described(tmp_path, engine, other, tables=("even", "odd")))
        yield retriever
        await retriever.aclose()


class TestTwoServersByRank(RetrieverConformance):
    """Languages differ, and so do scores."""

    expected: Mapping[str, str] = MappingProxyType({query: EXPECTED[query] for query in (LIGHTHOUSE, "heron fish water")})

    @pytest.fixture
    async def retriever(self, built: Built, engine: Engine, other: Engine, tmp_path: Path) -> AsyncIterator[Retriever]:
        built(table="all")
        built(on=other, table="all")
        spec = described(tmp_path, engine, other, tables=("all", "all"))
        file = tmp_path / "index.toml"
        file.write_text(file.read_text() + '\nlanguage = "simple"\n')
        retriever = open_index(spec)
        yield retriever
        await retriever.aclose()


@pytest.mark.usefixtures("encoded")
class TestVectors(RetrieverConformance):
    lexical = False

    @pytest.fixture
    async def retriever(self, engine: Engine, other: Engine, tmp_path: Path) -> AsyncIterator[Retriever]:
        spec = _with_vectors(tmp_path, engine, other, "vectors")
        retriever = open_index(spec)
        yield retriever
        await retriever.aclose()


@pytest.mark.usefixtures("encoded")
class TestBoth(RetrieverConformance):
    lexical = False

    @pytest.fixture
    async def retriever(self, engine: Engine, other: Engine, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(_with_vectors(tmp_path, engine, other, "both"))
        yield retriever
        await retriever.aclose()


def _with_vectors(path: Path, engine: Engine, other: Engine, by: str) -> str:
    from gnothi.retrieval.build import build
    from tests.retrieval.documents import write_jsonl

    for one, passages in ((engine, CORPUS[::2]), (other, CORPUS[1::2])):
        target = described(path, one, tables=("meant",), more='encoder = "words"')
        build([write_jsonl(path / "part.jsonl", passages)], target)
    return described(path, engine, other, tables=("meant", "meant"), more=f'encoder = "words"\nby = "{by}"')


async def test_two_servers_rank_as_one(built: Built, engine: Engine, other: Engine, tmp_path: Path) -> None:
    from tests.retrieval.documents import made_up

    passages = made_up(3, 400)
    whole = open_index(built(passages))
    built(passages[:150], table="part")
    built(passages[150:], on=other, table="part")
    parts = open_index(described(tmp_path, engine, other, tables=("part", "part")))
    for passage in passages[:40]:
        assert await parts.search(passage.text, 10) == await whole.search(passage.text, 10)
    await parts.aclose()
    await whole.aclose()


@pytest.fixture
def theirs(engine: Engine) -> str:
    """A table as others have it: numbers for ids, no title, no column of words, null texts."""
    import psycopg

    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        connection.execute(
            'DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; CREATE TABLE shop."Articles" (nr int, "The Body" text)'
        )
        connection.execute(
            "INSERT INTO shop.\"Articles\" VALUES (1, 'Salted plums keep for a year.'), (2, NULL), (3, 'Herons.')"
        )
    return 'table = "shop.Articles"\nid = "nr"\ntext = "The Body"\ntitle = ""\nwords = ""\nprefix = "shop/"\n'


async def test_a_table_of_others_is_searched_by_a_mapping(engine: Engine, theirs: str, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(f'server = "{engine.server}"\n{theirs}')
    spec = f"postgres:{tmp_path / 'shop.toml'}"
    assert await found(spec, "salty plum, salted") == [Passage("shop/1", "Salted plums keep for a year.")]
    assert index_fingerprint(spec) == ""


@pytest.mark.usefixtures("theirs")
async def test_what_does_not_fit_is_said_before_the_first_search(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable, match='column "id" does not exist'):
        open_index(f"postgres:{engine.server}#shop.Articles")
    with pytest.raises(IndexUnavailable, match='relation "nothing" does not exist'):
        open_index(f"postgres:{engine.server}#nothing")
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        open_index("postgres://postgres@127.0.0.1:9/postgres")
    (tmp_path / "odd.toml").write_text(f'server = "{engine.server}"\nlanguage = "klingon"\nwords = ""')
    with pytest.raises(IndexUnavailable):
        open_index(f"postgres:{tmp_path / 'odd.toml'}")


def test_the_fingerprint_changes_with_the_passages(built: Built) -> None:
    spec = built(CORPUS[:3], table="changing")
    first = index_fingerprint(spec)
    assert first
    assert index_fingerprint(spec) == first
    built(CORPUS, table="changing")
    assert index_fingerprint(spec) != first


async def test_one_id_with_two_texts_is_refused(built: Built, engine: Engine, other: Engine, tmp_path: Path) -> None:
    built([Passage("1", "A heron.")], table="clash")
    built([Passage("1", "Another heron.")], on=other, table="clash")
    with pytest.raises(InvalidSetting, match="prefix"):
        await found(described(tmp_path, engine, other, tables=("clash", "clash")), "heron")


@pytest.fixture
def victims(engine: Engine) -> str:
    import psycopg

    with closing(psycopg.connect(f"postgresql:{engine.server}", autocommit=True)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS victims AS SELECT 1 AS one")
    return "victims"


def unharmed(engine: Engine) -> bool:
    import psycopg

    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        return bool(connection.execute("SELECT count(*) FROM victims").fetchone() == (1,))


@pytest.mark.usefixtures("victims")
async def test_nothing_in_queries_ids_or_texts_is_sql(built: Built, engine: Engine) -> None:
    passages = [Passage(nasty, f"lighthouse {nasty}", nasty) for nasty in NASTY]
    spec = built(passages, table="nasty")
    assert {key: bare(one) for key, one in stored(engine, "nasty").items()} == {one.id: one for one in passages}
    for passage in passages:
        assert passage in await found(spec, f"lighthouse {passage.text}", 20)
        assert isinstance(await found(spec, passage.id, 5), list)
    assert unharmed(engine)


@pytest.mark.usefixtures("victims")
@pytest.mark.parametrize("nasty", NASTY)
async def test_nothing_in_names_is_sql(built: Built, engine: Engine, tmp_path: Path, nasty: str) -> None:
    table = nasty.replace(".", "")[:40]  # with what stands beside it, at most 63 bytes
    assert await found(built(table=table), "heron fish water", 1) == [CORPUS[4]]
    assert set(stored(engine, table)) == {passage.id for passage in CORPUS}
    for name in ("id", "title", "text", "words", "language", "vectors"):
        file = tmp_path / "odd.toml"
        more = "by = 'vectors'\nencoder = 'words'\n" if name == "vectors" else ""
        file.write_text(f"server = '''{engine.server}'''\ntable = 'victims'\n{more}{name} = '''{nasty}'''\n")
        with pytest.raises(IndexUnavailable):
            open_index(f"postgres:{file}")
    assert unharmed(engine)


async def test_a_search_changes_nothing(built: Built) -> None:
    from gnothi.retrieval.servers.postgres.server import Server
    from gnothi.retrieval.servers.postgres.table import tables

    (table,) = tables(built(table="kept").removeprefix("postgres:"))
    server = Server(table)
    with pytest.raises(IndexUnavailable, match="read-only"):
        await server.rows(table.sql("DELETE FROM {table}"), ())
    await server.aclose()

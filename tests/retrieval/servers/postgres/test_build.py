"""Building into a real PostgreSQL: added to, changed, killed with SIGKILL again and again, refused where it would do harm."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.listing import delete_sources
from gnothi.retrieval.registry import open_index
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import contents, write_jsonl
from tests.retrieval.servers.builds import Run, check_changes, check_command_line, check_kills, make_sources
from tests.retrieval.servers.postgres.conftest import stored
from tests.retrieval.servers.postgres.engine import NEEDED, Engine
from tests.retrieval.servers.postgres.test_search import described, found
from tests.retrieval.test_sync import Texts, as_texts, kill_twice, walk
from tests.stopping import Stopping

pytestmark = [NEEDED, pytest.mark.slow]
KILLS = 4


def start(source: Path, spec: str) -> Stopping:
    return Stopping("tests.retrieval.stopping_build", str(source), spec)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_sources(tmp_path / "docs", 2500, 30)


def test_the_same_passages_as_in_a_folder_whatever_changes(source: Path, tmp_path: Path, engine: Engine) -> None:
    check_changes(
        source, f"postgres:{engine.server}#changes", tmp_path / "folder", lambda: stored(engine, "changes"), shorter=800
    )


def test_killed_builds_resume_to_the_same_table(source: Path, tmp_path: Path, engine: Engine) -> None:
    def killed() -> dict[str, Passage]:
        found = stored(engine, "killed")
        _lock_is_free(engine)
        return found

    server = f"postgres:{engine.server}"
    check_kills(
        source,
        f"{server}#undisturbed",
        f"{server}#killed",
        tmp_path / "folder",
        lambda: stored(engine, "killed"),
        KILLS,
        killed=killed,
    )


def test_the_server_killed_under_a_build(source: Path, tmp_path: Path, other: Engine) -> None:
    chance = random.Random(1)
    build([source], tmp_path / "folder")
    spec = f"postgres:{other.server}#under"
    process = start(source, spec)
    assert process.go(chance.randint(1, 12))
    other.kill()
    _, errors = process.ended()
    other.start()
    assert "IndexUnavailable" in errors
    start(source, spec).finish()
    assert stored(other, "under") == contents(tmp_path / "folder")


def test_one_build_at_a_time(source: Path, engine: Engine) -> None:
    import psycopg

    from gnothi.retrieval.servers.postgres.table import tables
    from gnothi.retrieval.servers.postgres.writer import opened

    argument = f"{engine.server}#busy"
    with opened(argument, tables(argument)), pytest.raises(IndexUnavailable, match="one at a time"):
        build([source], f"postgres:{argument}")
    assert psycopg.__version__


def test_a_table_of_others_is_not_touched(engine: Engine, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(f"postgresql:{engine.server}", autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (id text, title text, text text)")
    with pytest.raises(IndexUnavailable, match="no build of ours made it"):
        build([write_jsonl(tmp_path / "a.jsonl", [Passage("a", "b")])], f"postgres:{engine.server}#precious")
    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        assert connection.execute("SELECT to_jsonb(precious) FROM precious").fetchall() == []
        assert connection.execute("SELECT to_regclass('precious_gnothi')").fetchone() == (None,)


def test_a_build_writes_to_one_server(engine: Engine, other: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="got 2 servers"):
        build([tmp_path], described(tmp_path, engine, other, tables=("a", "a")))


def test_vectors_come_with_the_passages_or_not_at_all(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoding, "passages", lambda _: words.passages)
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "first weights")
    source = write_jsonl(tmp_path / "a.jsonl", [Passage("a", "b")])
    spec = described(tmp_path, engine, tables=("encoded",), more='encoder = "words"\nby = "vectors"')
    build([source], spec)
    with pytest.raises(IndexUnavailable, match="built with vectors"):
        build([source], f"postgres:{engine.server}#encoded")
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "other weights")
    with pytest.raises(IndexUnavailable, match="other weights"):
        build([source], spec)
    optional = described(tmp_path, engine, tables=("encoded",), more='encoder = "words"\nby = "vectors"\noptional = true')
    with pytest.raises(IndexUnavailable, match="other weights"):  # it answers, so it may not be done without
        open_index(optional)


async def test_text_that_the_server_cannot_hold_is_replaced(engine: Engine, tmp_path: Path) -> None:
    spec = f"postgres:{engine.server}#odd"
    build([write_jsonl(tmp_path / "a.jsonl", [Passage("a\0b", "A heron\0 stands.", "\0")])], spec)
    assert await found(spec, "heron") == [Passage("a\ufffdb", "A heron\ufffd stands.", "\ufffd")]
    build([write_jsonl(tmp_path / "a.jsonl", [Passage("a\0b", "A heron\0 stands.", "\0")])], spec)
    assert len(stored(engine, "odd")) == 1


def test_the_command_line(gnothi: Run, engine: Engine, tmp_path: Path) -> None:
    check_command_line(gnothi, tmp_path, f"postgres:{engine.server}#shown", "postgres://postgres@127.0.0.1:9/x")


def _lock_is_free(engine: Engine) -> None:
    """The server has noticed that the one who held it is gone."""
    import psycopg

    deadline = time.monotonic() + 120
    with psycopg.connect(f"postgresql:{engine.server}", autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        while connection.execute(query).fetchone() != (0,):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("seed", range(2))
def test_it_follows_its_folders_whatever_is_killed(tmp_path: Path, engine: Engine, seed: int) -> None:
    from gnothi.retrieval.servers.postgres.writer import PostgresLedger, PostgresWriter

    def read() -> Texts:
        return as_texts(stored(engine, f"walk{seed}"))

    walk(tmp_path, f"postgres:{engine.server}#walk{seed}", seed, 80, read, PostgresWriter, PostgresLedger)


def test_two_builds_killed_one_after_the_other(tmp_path: Path, engine: Engine) -> None:
    from gnothi.retrieval.servers.postgres.writer import PostgresLedger

    spec = f"postgres:{engine.server}#twice"
    kill_twice(tmp_path, spec, lambda: as_texts(stored(engine, "twice")), PostgresLedger)


def test_files_are_deleted_from_what_is_there_alone(gnothi: Run, source: Path, engine: Engine) -> None:
    import psycopg

    spec = f"postgres:{engine.server}#sources"
    code, _, err = gnothi("index", "delete", spec, "docs")
    assert (code, "Traceback" in err) == (3, False)
    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        assert connection.execute("SELECT to_regclass('sources'), to_regclass('sources_gnothi')").fetchone() == (None, None)
    build([source], spec)
    assert delete_sources(spec, ["docs/note 3.txt"]).sources == ("docs/note 3.txt",)
    assert not any("Note 3." in one.text for one in stored(engine, "sources").values())
    for how in ((), ("--files",)):
        code, _, err = gnothi("index", "info", spec, *how)
        assert (code, "expected the folder" in err) == (2, True)


def test_a_table_of_an_earlier_version_is_refused_with_the_command(source: Path, engine: Engine) -> None:
    import psycopg

    spec = f"postgres:{engine.server}#old"
    build([source], spec)
    with psycopg.connect(f"postgresql:{engine.server}", autocommit=True) as connection:
        connection.execute("ALTER TABLE old DROP COLUMN gnothi_terms")
    with pytest.raises(IndexUnavailable, match="gnothi index build SOURCE"):
        build([source], spec)

"""The store of kept replies: bounded, shared between processes, and never in the way."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.models import store as store_module
from gnothi.models.store import ASIDE, FILE, Store, folder
from tests.patience import PATIENCE

MB = 2**20


class Opened:
    """Stores in one folder, and what they said."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[str] = []
        self.stores = contextlib.ExitStack()

    def store(self, limit: int = MB) -> Store:
        return self.stores.enter_context(contextlib.closing(Store(self.path, limit, self.said.append)))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path / "cache")
    with opened.stores:
        yield opened


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def test_what_was_put_is_got_by_this_and_later_stores(opened: Opened) -> None:
    first = opened.store()
    assert first.get(b"a") is None
    first.put(b"a", b"1")
    first.put(b"a", b"2")
    assert first.get(b"a") == b"2"
    assert opened.store().get(b"a") == b"2"
    first.close()
    first.close()
    assert opened.store().get(b"a") == b"2"
    assert opened.said == []


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.binary(min_size=1, max_size=20), st.binary(max_size=200), max_size=20))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, entries: dict[bytes, bytes]) -> None:
    store = Store(tmp_path_factory.mktemp("cache"), MB, pytest.fail)
    for key, value in entries.items():
        store.put(key, value)
    assert {key: store.get(key) for key in entries} == entries
    assert store.info().entries == len(entries)
    store.close()


def test_the_least_recently_used_go_first(opened: Opened) -> None:
    store = opened.store(limit=100_000)
    for value in range(80):
        store.put(number(value), bytes(1000))
    for value in range(10):
        assert store.get(number(value)) is not None
    for value in range(80, 400):
        store.put(number(value), bytes(1000))
        store.get(number(0))
        assert store.info().bytes <= 100_000 + 100 * 1_200
    assert store.get(number(0)) is not None
    assert store.get(number(399)) is not None
    assert store.get(number(15)) is None
    store.put(b"large", bytes(200_000))
    assert store.get(b"large") is None
    assert store.get(number(399)) is not None
    store.close()
    assert (opened.path / FILE).stat().st_size < 400_000


def test_uses_are_kept_across_processes_of_one_after_the_other(opened: Opened) -> None:
    store = opened.store()
    for value in range(20):
        store.put(number(value), bytes(1000))
    store.close()
    store = opened.store()
    store.get(number(0))
    store.close()
    small = opened.store(limit=12_000)
    small.put(b"new", bytes(1000))
    assert small.get(number(0)) is not None
    assert small.get(number(1)) is None


def _write_many(path: Path, worker: int, count: int, said: multiprocessing.Queue[str]) -> None:
    store_module.LOCK_SECONDS = PATIENCE  # here, in the worker
    store = Store(path, 40_000, said.put)
    for value in range(count):
        store.put(number(value), number(value) * 20)
        found = store.get(number((value * 7 + worker) % count))
        if found is not None and found != number((value * 7 + worker) % count) * 20:
            said.put("a value that nobody wrote")
    store.close()


def test_many_processes_at_once(opened: Opened) -> None:
    context = multiprocessing.get_context("spawn")
    said: multiprocessing.Queue[str] = context.Queue()
    workers = [context.Process(target=_write_many, args=(opened.path, worker, 300, said)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert said.empty()
    info = opened.store().info()
    assert 0 < info.entries <= 300
    assert info.bytes <= 40_000 + 3 * 100 * 300


@pytest.mark.parametrize("when", ["before", "while open"])
@pytest.mark.parametrize("damage", ["not a database", "in the middle", "empty header", "another table"])
def test_a_damaged_file_is_put_aside_with_a_word(opened: Opened, damage: str, when: str) -> None:
    store = opened.store()
    for value in range(200):
        store.put(number(value), bytes(500))
    if when == "before":
        store.close()
        store = opened.store()
    else:
        store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[union-attr]
    file = opened.path / FILE
    content = bytearray(file.read_bytes())
    if damage == "not a database":
        content[:] = b"no database at all, but a text of some length. " * 100
    elif damage == "in the middle":
        content[4096:60_000] = random.Random(0).randbytes(60_000 - 4096)
    elif damage == "empty header":
        content[:100] = bytes(100)
    else:
        database = sqlite3.connect(file)
        with database:
            database.execute("ALTER TABLE calls RENAME COLUMN value TO other")
        database.close()
        content = bytearray(file.read_bytes())
    file.write_bytes(bytes(content))
    if when == "while open":
        # SQLite may go on from memory for a while: what it finds is right or nothing, and the next to open it repairs it.
        assert all(store.get(number(value)) in (None, bytes(500)) for value in range(200))
        store.put(number(0), b"new")
        store.close()
        store = opened.store()
    assert all(store.get(number(value)) in (None, bytes(500), b"new") for value in range(200))
    for value in range(200):
        store.put(number(value), b"new")
    assert [store.get(number(value)) for value in range(200)] == [b"new"] * 200
    assert len(opened.said) == 1
    assert "is damaged (" in opened.said[0]
    assert (opened.path / ASIDE).exists()
    store.close()
    assert opened.store().get(number(7)) == b"new"


@pytest.mark.parametrize("value", ["'a text'", "-5", "1.5", "1 << 50", "x'00'"])
@pytest.mark.parametrize("column", ["value", "size", "used"])
def test_values_of_other_kinds_are_none_that_were_kept(opened: Opened, column: str, value: str) -> None:
    store = opened.store()
    for key in range(9):
        store.put(number(key), bytes(500))
    store.close()
    with contextlib.closing(sqlite3.connect(opened.path / FILE)) as database, database:
        database.execute(f"UPDATE calls SET {column} = {value}")
    store = opened.store(5_000)
    assert all(store.get(number(key)) in (None, bytes(500)) for key in range(9))
    info = store.info()
    assert (info.entries, type(info.bytes)) == (9, int)
    assert isinstance(info.oldest, float)
    for key in range(300):
        store.put(number(key), b"new" * 100)
    assert store.get(number(299)) == b"new" * 100
    assert not opened.said


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    said: list[str] = []
    store = Store(tmp_path / "file" / "cache", MB, said.append)
    store.put(b"a", b"1")
    assert store.get(b"a") is None
    assert store.info().entries == 0
    assert len(said) == 1
    assert "going on without it" in said[0]
    store.close()


def test_a_full_disk_ends_the_keeping_alone(opened: Opened) -> None:
    store = opened.store()
    store.put(b"a", b"1")
    store._database.execute("PRAGMA max_page_count = 1")  # type: ignore[union-attr]
    for value in range(200):
        store.put(number(value), bytes(1000))
    assert len(opened.said) == 1
    assert "full" in opened.said[0]
    assert opened.store().get(b"a") == b"1"


def test_clear_and_info(opened: Opened) -> None:
    assert opened.store().info().entries == 0
    assert not opened.path.exists()
    store = opened.store()
    for value in range(5):
        store.put(number(value), bytes(100_000))
    info = store.info()
    assert info.entries == 5
    assert info.bytes >= 500_000
    assert info.oldest is not None
    (opened.path / ASIDE).write_bytes(b"x")
    other = opened.store()
    assert other.clear().entries == 5
    assert store.get(number(1)) is None
    assert store.info().entries == 0
    assert sorted(path.name for path in opened.path.iterdir() if path.name == ASIDE) == []
    assert (opened.path / FILE).stat().st_size < 100_000


def test_entries_of_another_version_are_forgotten(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened.store()
    store.put(b"a", b"1")
    store.close()
    monkeypatch.setattr(store_module, "VERSION", 2)
    assert opened.store().get(b"a") is None
    assert opened.said == []


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/z")
    monkeypatch.setenv("GNOTHI_CACHE", "/x/y")
    assert folder() == Path("/x/y")
    monkeypatch.setenv("GNOTHI_CACHE", "~/kept")
    assert folder() == Path.home() / "kept"
    monkeypatch.setenv("GNOTHI_CACHE", " ")
    assert folder() == Path("/z/gnothi")
    monkeypatch.delenv("XDG_CACHE_HOME")
    if sys.platform == "linux":
        assert folder() == Path.home() / ".cache" / "gnothi"

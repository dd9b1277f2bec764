"""A server killed, frozen or full while others ask it: waited for, refused, or done without and said so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gnothi import events
from gnothi.errors import IndexUnavailable
from gnothi.retrieval.registry import open_index
from gnothi.types import ScoredPassage
from tests.retrieval.documents import made_up
from tests.retrieval.servers.postgres.engine import NEEDED, Engine
from tests.retrieval.servers.postgres.test_search import described

pytestmark = [NEEDED, pytest.mark.slow]
PASSAGES = made_up(7, 200)
QUERIES = [passage.text for passage in PASSAGES]


@pytest.fixture
def two(built: Callable[..., str], engine: Engine, other: Engine, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """The passages on two servers, of which the second is for killing; what is given is put into the file."""
    built(PASSAGES[:100], table="half")
    built(PASSAGES[100:], on=other, table="half")
    yield lambda more="": described(tmp_path, engine, other, tables=("half", "half"), more=more)
    other.freeze(False)
    other.kill()
    other.start()


async def searched(spec: str, queries: list[str]) -> list[tuple[ScoredPassage, ...] | BaseException]:
    retriever = open_index(spec)
    try:
        return await asyncio.gather(*(retriever.search(query, 5) for query in queries), return_exceptions=True)
    finally:
        await retriever.aclose()


async def test_a_killed_server_is_waited_for(two: Callable[..., str], other: Engine) -> None:
    expected = await searched(two(), QUERIES)
    retriever = open_index(two("patience = 100"))
    asked = [asyncio.create_task(retriever.search(query, 5)) for query in QUERIES]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    other.kill()
    await asyncio.sleep(0.5)
    assert not all(task.done() for task in asked)
    await asyncio.to_thread(other.start)
    assert await asyncio.gather(*asked) == expected
    await retriever.aclose()


async def test_one_that_stays_away_fails_what_needs_it_and_nothing_wrong_comes_back(
    two: Callable[..., str], other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.patience._NEWS", 0.0)
    expected = await searched(two(), QUERIES)
    retriever = open_index(two("patience = 0.5"))
    asked = [asyncio.create_task(retriever.search(query, 5)) for query in QUERIES]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    other.kill()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(one) for one in outcomes} == {tuple, IndexUnavailable}
    assert all(one == right for one, right in zip(outcomes, expected, strict=True) if isinstance(one, tuple))
    await asyncio.to_thread(other.start)
    assert await asyncio.gather(*(retriever.search(query, 5) for query in QUERIES)) == expected
    await retriever.aclose()


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
        with pytest.raises(IndexUnavailable, match=r"no answer within 0\.5 s"):
            await retriever.search("b", 1)
        assert asked_to_stop == []
    finally:
        other.freeze(False)
    await retriever.aclose()

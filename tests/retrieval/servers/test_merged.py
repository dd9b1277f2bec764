"""How an index on servers is described, and one ranking of what several find."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gnothi import events
from gnothi.errors import IndexUnavailable, InvalidInput, InvalidSetting, UnknownName
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.servers.searching import Merged, Results, described
from gnothi.types import Passage, ScoredPassage
from tests.messages import refused


@dataclass(frozen=True)
class Place:
    server: str
    table: str = "passages"
    timeout: float = 30.0


def test_an_address_may_name_the_table() -> None:
    assert described(Place, "//host/db", "x") == [Place("//host/db")]
    assert described(Place, "//host/db#wiki", "x") == [Place("//host/db", "wiki")]


def test_a_file_describes_several_servers(tmp_path: Path) -> None:
    file = tmp_path / "index.toml"
    file.write_text('timeout = 5\ntable = "t"\n[[servers]]\nserver = "one"\n[[servers]]\nserver = "two"\ntable = "u"\n')
    assert described(Place, str(file), "x") == [Place("one", "t", 5.0), Place("two", "u", 5.0)]
    file.write_text('server = "one"\n')
    assert described(Place, str(file), "x") == [Place("one")]


@pytest.mark.parametrize(
    "text",
    [
        "timeout = 5",
        'server = ""',
        "servers = 3",
        "servers = []",
        "servers = [1]",
        "server = ",
        'server = "x"\ntimeout = "soon"',
        'server = "x"\ntabel = "t"',
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "index.toml"
    file.write_text(text)
    with refused((InvalidInput, InvalidSetting, UnknownName)):
        described(Place, str(file), "x")


def test_no_address_and_no_file() -> None:
    for nothing in ("", "//", " "):
        with refused(InvalidSetting):
            described(Place, nothing, "x")
    with refused(InvalidInput):
        described(Place, "missing.toml", "x")


def scored(key: str, score: float, text: str = "") -> ScoredPassage:
    return ScoredPassage(Passage(key, text or key), score)


@dataclass
class Share:
    name: str
    found: list[ScoredPassage] = field(default_factory=list)
    optional: bool = False
    away: bool = False
    closed: int = 0

    async def search(self, query: str, k: int, filters: Filters = ()) -> Results:  # noqa: ARG002
        if self.away:
            raise IndexUnavailable(f"{self.name} did not answer")
        return self.found[:k]

    async def keys(self) -> list[str]:
        return []

    async def aclose(self) -> None:
        self.closed += 1


ONE = Share("one", [scored("a", 0.9), scored("c", 0.2)])
TWO = Share("two", [scored("b", 0.5), scored("a", 0.4)])


async def ids(merged: Merged, k: int = 10) -> list[str]:
    return [one.passage.id for one in await merged.search("query", k)]


async def test_scores_that_are_comparable_rank() -> None:
    found = await Merged([ONE, TWO], "both", comparable=True).search("query", 2)
    assert found == (scored("a", 0.9), scored("b", 0.5))


async def test_else_ranks_do_and_equal_ones_go_by_id() -> None:
    found = await Merged([TWO, ONE], "both", comparable=False).search("query", 10)
    assert [(one.passage.id, one.score) for one in found] == [("a", 1 / 61), ("b", 1 / 61), ("c", 1 / 62)]


async def test_a_server_that_is_away_fails_the_search_unless_it_is_optional() -> None:
    with refused(IndexUnavailable):
        await ids(Merged([ONE, Share("three", away=True)], "both", comparable=True))
    with events.record() as seen:
        assert await ids(Merged([ONE, Share("three", optional=True, away=True)], "both", comparable=True)) == ["a", "c"]
    assert seen == [events.Partial("both", 2, (("three", "three did not answer"),))]
    with events.record() as seen:
        await ids(Merged([ONE, TWO], "both", comparable=True))
    assert seen == []


async def test_nobody_there_is_no_partial_result() -> None:
    away = [Share("one", optional=True, away=True), Share("two", optional=True, away=True)]
    with refused(IndexUnavailable):
        await ids(Merged(away, "both", comparable=True))


async def test_one_id_names_one_passage() -> None:
    other = Share("two", [scored("a", 0.5, "another text")])
    with refused(InvalidSetting):
        await ids(Merged([ONE, other], "both", comparable=True))


async def test_closing_closes_all() -> None:
    shares = [Share("one"), Share("two")]
    await Merged(shares, "both", comparable=True).aclose()
    assert [share.closed for share in shares] == [1, 1]

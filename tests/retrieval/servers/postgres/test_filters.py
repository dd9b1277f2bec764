from __future__ import annotations

from collections.abc import Callable

import pytest

from gnothi.errors import InvalidSetting
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.registry import open_index
from tests.retrieval.filtered import check, passages, sourced
from tests.retrieval.servers.postgres.engine import Engine

pytestmark = pytest.mark.slow


async def test_a_filtered_search_finds_what_a_plain_scan_lets_through(built: Callable[..., str]) -> None:
    corpus = passages(1)
    index = open_index(built(corpus))
    await check(index, sourced(corpus, "passages.jsonl"), seed=2)
    await index.aclose()


async def test_a_table_of_others_is_searched_and_not_filtered(engine: Engine) -> None:
    import psycopg

    with psycopg.connect(f"postgresql:{engine.server}") as connection:
        connection.execute("CREATE TABLE theirs (id text, title text, text text, gnothi_words tsvector)")
        connection.execute("INSERT INTO theirs VALUES ('a', '', 'A heron stands.', to_tsvector('english', 'a heron stands'))")
    index = open_index(f"postgres:{engine.server}#theirs")
    assert [one.passage.id for one in await index.search("heron", 3)] == ["a"]
    with pytest.raises(InvalidSetting, match="cannot filter by metadata"):
        await filtered(index, as_filters("source=a")).search("heron", 3)
    await index.aclose()

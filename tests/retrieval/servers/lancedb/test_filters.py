from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting
from gnothi.retrieval.build import build
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.registry import open_index
from tests.retrieval.documents import write_jsonl
from tests.retrieval.filtered import check, passages, sourced

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lancedb") is None,
    reason="lancedb is not installed: `make test-beside` installs it in an environment of its own",
)


@pytest.mark.slow
async def test_a_filtered_search_finds_what_a_plain_scan_lets_through(tmp_path: Path) -> None:
    corpus = passages(1)
    spec = f"lancedb:{tmp_path / 'lance'}"
    build([write_jsonl(tmp_path / "corpus.jsonl", corpus)], spec)
    await check(open_index(spec), sourced(corpus, "corpus.jsonl"), seed=2)


async def test_a_table_of_others_is_searched_and_not_filtered(tmp_path: Path) -> None:
    import lancedb
    from lancedb.index import FTS

    made = lancedb.connect(tmp_path / "lance").create_table("theirs", [{"id": "a", "title": "", "text": "A heron stands."}])
    made.create_index("text", config=FTS())
    (tmp_path / "index.toml").write_text(f'server = "{tmp_path / "lance"}"\ntable = "theirs"\nwords = ""\n')
    index = open_index(f"lancedb:{tmp_path / 'index.toml'}")
    assert [one.passage.id for one in await index.search("heron", 3)] == ["a"]
    with pytest.raises(InvalidSetting, match="cannot filter by metadata"):
        await filtered(index, as_filters("source=a")).search("heron", 3)

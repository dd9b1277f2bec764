from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting
from gnothi.retrieval.build import build
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.registry import open_index
from tests.retrieval.documents import write_jsonl
from tests.retrieval.filtered import check, passages, sourced
from tests.retrieval.servers.lucene.fake import Fake


@pytest.mark.slow
async def test_a_filtered_search_finds_what_a_plain_scan_lets_through(fake: Fake, tmp_path: Path) -> None:
    corpus = passages(1)
    spec = f"{fake.engine}:{fake.url}/filtered"
    build([write_jsonl(tmp_path / "corpus.jsonl", corpus)], spec)
    index = open_index(spec)
    await check(index, sourced(corpus, "corpus.jsonl"), seed=2)
    await index.aclose()


async def test_an_index_of_others_is_not_filtered(fake: Fake, tmp_path: Path) -> None:
    spec = f"{fake.engine}:{fake.url}/theirs"
    build([write_jsonl(tmp_path / "corpus.jsonl", passages(1, 3))], spec)
    del fake.shelves["theirs"].mapping["gnothi_terms"]
    index = open_index(spec)
    with pytest.raises(InvalidSetting, match="cannot filter by metadata"):
        await filtered(index, as_filters("source=a")).search("heron", 3)
    await index.aclose()

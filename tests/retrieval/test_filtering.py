from __future__ import annotations

from gnothi.retrieval.bm25 import BM25Index
from tests.retrieval.filtered import check, passages


async def test_a_filtered_search_finds_what_a_plain_scan_lets_through() -> None:
    corpus = passages(1)
    await check(BM25Index.in_memory(corpus), corpus, seed=2)

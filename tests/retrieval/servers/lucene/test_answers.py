"""An answer is read whole, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.servers.lucene.index import MOST, Index, as_text, field, read_hits
from gnothi.retrieval.servers.patience import Passing
from gnothi.types import Passage, ScoredPassage

INDEX = Index("https://host")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["hits", "total", "value", "_shards", "_score", "x"]), inner)
    ),
)


def answer(hits: int = 2, total: int = 2, **more: Any) -> dict[str, Any]:
    found = [{"_id": f"h{i}", "_score": 1.5, "_source": {"id": f"p{i}", "text": "t", "title": None}} for i in range(hits)]
    return {"_shards": {"total": 3, "successful": 3}, "hits": {"total": {"value": total}, "hits": found}, **more}


def test_a_whole_answer() -> None:
    hits = read_hits(answer(), INDEX, 5)
    assert hits.passages == tuple(ScoredPassage(Passage(f"p{i}", "t", ""), 1.5) for i in range(2))
    assert hits.lacking == ()
    assert read_hits(answer(), Index("https://host", id="_id", prefix="x/"), 5).passages[0].passage.id == "x/h0"


@pytest.mark.parametrize(
    "broken",
    [
        answer(hits=1),  # of two
        answer(hits=3, total=5),  # asked for two
        answer(_shards={"total": 3, "successful": 2, "failures": [{"shard": 1, "index": "x", "reason": {"reason": "gone"}}]}),
        answer(_shards={"total": 3, "successful": 2}),
        answer(timed_out=True),
        answer(_clusters={"skipped": 1}),
        {"took": 1},
        {"_shards": {"total": 1, "successful": 1}, "hits": {"total": None, "hits": []}},
        {"_shards": {"total": 1, "successful": 1}, "hits": {"total": 1, "hits": [{"_id": "a"}]}},
        {"_shards": [], "hits": []},
    ],
)
def test_what_is_not_whole_is_asked_for_again(broken: dict[str, Any]) -> None:
    with pytest.raises((Passing, IndexUnavailable)):
        read_hits(broken, INDEX, 2)


@given(JSON)
def test_any_json_is_read_or_refused(found: Any) -> None:
    with pytest.raises(Passing):
        read_hits(found, INDEX, 3)


def test_partial_answers_name_what_lacks() -> None:
    partial = Index("https://host", partial=True)
    shards = {"total": 3, "successful": 1, "failures": [{"shard": 1, "index": "x", "reason": {"type": "io", "reason": "gone"}}]}
    hits = read_hits(answer(hits=1, _shards=shards), partial, 5)
    assert len(hits.passages) == 1
    assert hits.lacking == (("shard 1 of x", "gone"), ("a shard", "no reason given"))
    assert read_hits(answer(timed_out=True), partial, 5).lacking == (("a shard", "ran out of time"),)
    assert read_hits(answer(_clusters={"skipped": 1}), partial, 5).lacking == (("a cluster", "was left out"),)


def test_without_a_source_there_are_no_passages() -> None:
    found = answer()
    del found["hits"]["hits"][0]["_source"]
    with pytest.raises(IndexUnavailable, match="_source"):
        read_hits(found, INDEX, 5)


def test_more_than_a_server_shows() -> None:
    found = answer(hits=MOST, total=MOST + 1)
    assert len(read_hits(found, INDEX, MOST).passages) == MOST
    with pytest.raises(InvalidSetting, match=f"at most {MOST}"):
        read_hits(found, INDEX, MOST + 1)


def test_dots_are_steps_or_letters() -> None:
    assert field({"a": {"b": {"c": 1}}}, "a.b.c") == 1
    assert field({"a.b": {"c": 1}}, "a.b.c") == 1
    assert field({"a.b.c": 1}, "a.b.c") == 1
    assert field({"a": 1}, "a.b") is None
    assert field({"a": 1}, "") is None
    assert as_text([1, None, "x", ["y"]]) == "1\n\nx\ny"

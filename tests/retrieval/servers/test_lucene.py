"""Elasticsearch and OpenSearch: what is asked, an answer that is read whole or not at all, and a server that is full, slow,
broken or lying: nothing lost, nothing twice, nothing wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import events
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.retrieval.servers.lucene import (
    MOST,
    Index,
    as_settings,
    as_text,
    field,
    field_of,
    indices,
    near,
    numbers,
    read_hits,
)
from gnothi.retrieval.servers.lucene_build import LuceneWriter, opened
from gnothi.retrieval.servers.patience import Passing
from gnothi.testing.conformance.retriever import CORPUS
from gnothi.types import Passage, ScoredPassage
from tests.messages import refused
from tests.retrieval.dense import words
from tests.retrieval.documents import bare, contents, made_up, sourced, write_jsonl
from tests.retrieval.servers.backends import Lucene
from tests.retrieval.servers.fake import FAULTS, Fake, Shelf
from tests.retrieval.servers.test_servers import ENCODED, HERON, built, found

URL = "https://host:9200"
INDEX = Index(URL)
PASSAGES = made_up(7, 200)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["hits", "total", "value", "_shards", "_score", "x"]), inner)
    ),
)
Found = TypeVar("Found")


# What can be said of an index without a server.


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        (URL, {"server": URL}),
        (f"{URL}/", {"server": f"{URL}/"}),
        (f"{URL}/notes", {"server": URL, "index": "notes"}),
        (f"{URL}/behind/notes/", {"server": f"{URL}/behind", "index": "notes"}),
        ("notes", {"server": "notes"}),
    ],
)
def test_an_address_names_the_index(argument: str, settings: dict[str, str]) -> None:
    assert as_settings(argument) == settings


@pytest.mark.parametrize(
    "more",
    [
        {"index": " "},
        {"server": "host:9200"},
        {"server": "ftp://host"},
        {"server": "https://host:x"},
        {"server": "https://"},
        {"server": f"{URL}/?q=1"},
        {"server": "https://me:fish@host"},
    ],
)
def test_settings_that_cannot_be(more: dict[str, Any]) -> None:
    with refused(InvalidSetting) as caught:
        Index(**{"server": URL, **more})
    assert "fish" not in str(caught.value)


def test_secrets_come_from_the_environment_and_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (index,) = indices("https://me@host:9200/notes", "opensearch")
    assert (index.name, index.address) == ("host:9200 index notes", URL)
    with refused(InvalidSetting):
        index.credentials("opensearch")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "fish")
    assert index.credentials("opensearch") == ("me", "fish")
    assert INDEX.credentials("elasticsearch") == ("", "")
    with refused(InvalidSetting):
        Index(URL, secret="SHOP").credentials("elasticsearch")
    monkeypatch.setenv("SHOP", "herring")
    assert Index(URL, secret="SHOP").credentials("elasticsearch") == ("", "herring")
    with refused(InvalidSetting):
        Index(URL, secret="SHOP").credentials("opensearch")


def test_no_name_leaves_its_place_in_the_path() -> None:
    assert Index(URL, index="../_all/x?y#z").path("_search") == "/..%2F_all%2Fx%3Fy%23z/_search"
    assert Index(URL, index="logs-*,notes").path("_search", "-b") == "/logs-*,notes-b/_search"


def test_a_search_asks_for_global_statistics_and_whole_answers(tmp_path: Path) -> None:
    params, body = INDEX.by_words("a OR b", 3)
    assert (params["search_type"], params["allow_partial_search_results"]) == ("dfs_query_then_fetch", "false")
    assert body["query"] == {"match": {"gnothi_words": {"query": "a OR b", "operator": "or"}}}
    assert body["sort"] == [{"_score": "desc"}, {"id": "asc"}]
    (tmp_path / "index.toml").write_text(f'server = "{URL}"\nwords = ""\nid = "_id"\npartial = true\n')
    (index,) = indices(str(tmp_path / "index.toml"), "elasticsearch")
    params, body = index.by_words("a", 3)
    assert params["allow_partial_search_results"] == "true"
    assert body["query"]["multi_match"]["fields"] == ["title", "text"]
    assert body["sort"] == [{"_score": "desc"}]


def test_elasticsearch_is_asked_for_the_nearest_of_all_shards_opensearch_of_each() -> None:
    vector = np.asarray([0.1, -2.0, 0.5], np.float32)
    params, body = near(INDEX, "elasticsearch", vector, 5)
    assert "search_type" not in params
    assert body["knn"] == {"field": "gnothi_vector", "query_vector": [0.100000001, -2.0, 0.5], "k": 5, "num_candidates": 256}
    assert (body["size"], body["_source"]) == (5, ["id", "title", "text", "gnothi_metadata"])
    assert near(INDEX, "elasticsearch", vector, 700)[1]["knn"]["num_candidates"] == 700
    _, body = near(Index(URL, vectors="v"), "opensearch", np.asarray([0.5], np.float32), 5)
    assert (body["query"], body["size"]) == ({"knn": {"v": {"vector": [0.5], "k": 256}}}, 5)
    drawn = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    assert (np.asarray(numbers(drawn), np.float32) == drawn).all()


@pytest.mark.parametrize(
    ("distance", "similarity", "space"),
    [
        ("inner", "max_inner_product", ("innerproduct", "faiss")),
        ("cosine", "cosine", ("cosinesimil", "lucene")),
        ("euclidean", "l2_norm", ("l2", "faiss")),
    ],
)
def test_fields_that_are_made(distance: Any, similarity: str, space: tuple[str, str]) -> None:
    index = Index(URL, distance=distance)
    made = field_of(index, "elasticsearch", 384)
    assert (made["type"], made["dims"], made["similarity"]) == ("dense_vector", 384, similarity)
    made = field_of(index, "opensearch", 384)
    assert (made["type"], made["dimension"]) == ("knn_vector", 384)
    assert (made["method"]["space_type"], made["method"]["engine"]) == space


# Answers.


def answer(hits: int = 2, total: int = 2, **more: Any) -> dict[str, Any]:
    given = [{"_id": f"h{i}", "_score": 1.5, "_source": {"id": f"p{i}", "text": "t", "title": None}} for i in range(hits)]
    return {"_shards": {"total": 3, "successful": 3}, "hits": {"total": {"value": total}, "hits": given}, **more}


def test_a_whole_answer() -> None:
    hits = read_hits(answer(), INDEX, 5)
    assert hits.passages == tuple(ScoredPassage(Passage(f"p{i}", "t", ""), 1.5) for i in range(2))
    assert hits.lacking == ()
    assert read_hits(answer(), Index(URL, id="_id", prefix="x/"), 5).passages[0].passage.id == "x/h0"


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


@settings(max_examples=settings().max_examples // 3)
@given(JSON)
def test_any_json_is_read_or_refused(found: Any) -> None:
    with pytest.raises(Passing):
        read_hits(found, INDEX, 3)


def test_partial_answers_name_what_lacks() -> None:
    partial = Index(URL, partial=True)
    shards = {"total": 3, "successful": 1, "failures": [{"shard": 1, "index": "x", "reason": {"type": "io", "reason": "gone"}}]}
    hits = read_hits(answer(hits=1, _shards=shards), partial, 5)
    assert len(hits.passages) == 1
    assert hits.lacking == (("shard 1 of x", "gone"), ("a shard", "no reason given"))
    assert read_hits(answer(timed_out=True), partial, 5).lacking == (("a shard", "ran out of time"),)
    assert read_hits(answer(_clusters={"skipped": 1}), partial, 5).lacking == (("a cluster", "was left out"),)


def test_what_an_answer_must_hold() -> None:
    given = answer()
    del given["hits"]["hits"][0]["_source"]
    with refused(IndexUnavailable):
        read_hits(given, INDEX, 5)
    given = answer(hits=MOST, total=MOST + 1)
    assert len(read_hits(given, INDEX, MOST).passages) == MOST
    with refused(InvalidSetting):
        read_hits(given, INDEX, MOST + 1)


def test_dots_are_steps_or_letters() -> None:
    for nested in ({"a": {"b": {"c": 1}}}, {"a.b": {"c": 1}}, {"a.b.c": 1}):
        assert field(nested, "a.b.c") == 1
    assert field({"a": 1}, "a.b") is None
    assert field({"a": 1}, "") is None
    assert as_text([1, None, "x", ["y"]]) == "1\n\nx\ny"


# A server of ours.


async def test_fields_in_objects_and_ids_of_the_server(lucene: Lucene) -> None:
    shelf = lucene.fake.shelves["shop"] = Shelf({"nr": {"type": "long"}, "body.content": {"type": "text"}})
    shelf.put("x1", {"nr": 1, "body": {"content": ["Salted plums.", "They keep for a year."]}})
    shelf.put("x3", {"nr": 3, "body.content": "Herons."})
    shelf.refresh()
    fields = 'text = "body.content"\ntitle = ""\nwords = ""\n'
    spec = lucene.described("shop", more=f'id = "nr"\n{fields}')
    assert await found(spec, "salted plums") == [Passage("1", "Salted plums.\nThey keep for a year.")]
    assert await found(lucene.described("shop", more=f'id = "_id"\n{fields}'), "heron") == [Passage("x3", "Herons.")]


async def test_what_does_not_fit_is_said_before_the_first_search(lucene: Lucene) -> None:
    spec = built(lucene)
    with refused(IndexUnavailable):
        open_index(lucene.spec("nothing"))
    for more in ('text = "body"', 'id = "text"'):
        with refused(IndexUnavailable):
            open_index(lucene.described("passages", more=more))
    lucene.fake.status, lucene.fake.failed = "red", 1
    with refused(IndexUnavailable):
        open_index(spec)
    open_index(lucene.described("passages", more="partial = true"))


async def test_secrets_are_sent(lucene: Lucene, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, fake = built(lucene), lucene.fake
    fake.secret = "Basic bWU6ZmlzaA=="
    with refused(IndexUnavailable):
        open_index(spec)
    monkeypatch.setenv(f"{fake.engine.upper()}_PASSWORD", "fish")
    assert await found(spec.replace("//", "//me@"), HERON, 1) == [CORPUS[4]]
    monkeypatch.setenv("SHOP", "fish")
    assert await found(lucene.described("passages", more='user = "me"\nsecret = "SHOP"'), HERON, 1) == [CORPUS[4]]
    if fake.engine == "elasticsearch":
        fake.secret = "ApiKey herring"
        monkeypatch.setenv("ELASTICSEARCH_API_KEY", "herring")
        assert await found(spec, HERON, 1) == [CORPUS[4]]


@pytest.mark.usefixtures("encoded")
@pytest.mark.parametrize("by", ["words", "vectors"])
async def test_shards_that_fail_are_declared_or_refused(lucene: Lucene, by: str) -> None:
    built(lucene, more=ENCODED)
    lucene.fake.failed = 1
    more = f'{ENCODED}by = "{by}"\n'
    with refused(IndexUnavailable):
        await found(lucene.described("passages", more=f"{more}patience = 0.05"), HERON)
    with events.record() as seen:
        assert await found(lucene.described("passages", more=f"{more}partial = true"), HERON)
    partial = [(one.servers, one.lacking) for one in seen if isinstance(one, events.Partial)]
    assert partial == [(3, (("shard 0 of passages", "no disk"),))]


@pytest.mark.usefixtures("encoded")
@pytest.mark.parametrize("by", ["words", "vectors"])
async def test_more_than_a_server_shows_at_once_is_refused(lucene: Lucene, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.MOST", 4)
    built(lucene, [Passage(f"{9 - i}", "A heron.") for i in range(10)], more=ENCODED)
    spec = lucene.described("passages", more=f'{ENCODED}by = "{by}"')
    assert len(await found(spec, "heron", 4)) == 4
    with refused(InvalidSetting):
        await found(spec, "heron", 5)


@pytest.mark.usefixtures("encoded")
async def test_all_with_the_last_ones_score_are_asked_for(lucene: Lucene) -> None:
    """The server has them in any order, here that of writing."""
    spec = built(lucene, [Passage(f"{9 - i}", "A heron.") for i in range(10)], more=f'{ENCODED}by = "vectors"')
    assert [one.id for one in await found(spec, "heron")] == ["0", "1", "2"]


# Building.


def test_a_build_that_begins_later_takes_over(lucene: Lucene, tmp_path: Path) -> None:
    argument = lucene.spec("passages").partition(":")[2]
    with opened(argument, lucene.fake.engine) as first:  # type: ignore[arg-type]
        first.writer.put_all([(Passage("a", "b"), "origin")])
        built(lucene)
        with refused(IndexUnavailable):
            first.writer.put_all([(Passage("c", "d"), "origin")])
    built(lucene)
    build([tmp_path / "passages.jsonl"], tmp_path / "folder")
    assert lucene.stored("passages") == contents(tmp_path / "folder")


def test_an_index_that_was_removed_is_built_whole(lucene: Lucene) -> None:
    built(lucene)
    before = lucene.stored("passages")
    del lucene.fake.shelves["passages"]
    built(lucene)
    assert lucene.stored("passages") == before


@pytest.mark.parametrize("more", ['id = "_id"', 'words = ""', 'title = ""', 'encoder = "e"\nvectors = "text"'])
def test_what_cannot_be_built(lucene: Lucene, more: str) -> None:
    with refused(InvalidSetting):
        built(lucene, more=more)
    assert lucene.fake.shelves == {}


@pytest.mark.parametrize("name", ["Notes", "notes*", "_all", "a" * 250], ids=["capital", "star", "own", "long"])
def test_names_that_cannot_be_built(lucene: Lucene, name: str) -> None:
    with refused(InvalidSetting):
        built(lucene, table=name)
    assert lucene.fake.shelves == {}


def test_a_passage_that_the_server_does_not_take_is_named(lucene: Lucene) -> None:
    with refused(IndexUnavailable):
        built(lucene, [Passage("a", "unacceptable")])


def test_large_passages_go_in_several_requests(lucene: Lucene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.lucene_build._REQUEST_BYTES", 2_000)
    built(lucene, [Passage(str(i), f"heron {i} " * 60) for i in range(10)])
    assert len(lucene.stored("passages")) == 10


def test_a_build_goes_on_and_encodes_what_is_new(lucene: Lucene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    counted = words.Counted()
    monkeypatch.setattr(Encoding, "passages", lambda _: counted)
    first, second = PASSAGES[:50], [Passage(f"second {one.id}", one.text) for one in PASSAGES[50:80]]
    folder, spec = tmp_path / "docs", lucene.described("near", more=ENCODED)
    folder.mkdir()
    write_jsonl(folder / "1.jsonl", first)
    build([folder], spec)
    write_jsonl(folder / "2.jsonl", second)
    with monkeypatch.context() as patched:
        patched.setattr(LuceneWriter, "commit", killed)
        with pytest.raises(Killed):
            build([folder], spec)
    assert counted.seen[-len(second) :] == [one.id for one in second]
    counted.seen.clear()
    build([folder], spec)  # what the killed build stored stands there, with its vectors
    assert counted.seen == []
    assert {key: bare(one) for key, one in lucene.stored("near").items()} == {one.id: one for one in [*first, *second]}
    assert lucene.fake.vectors_sent == 0


# Faults.


async def in_time(search: Callable[[], Awaitable[Found]]) -> Found:
    """What a server finds that answers again, where its limit of time is short: a busy machine may take longer."""
    until = time.monotonic() + 120
    while True:
        try:
            return await search()
        except IndexUnavailable as error:
            if "no answer in" not in str(error) or time.monotonic() > until:
                raise


@pytest.mark.slow
@pytest.mark.usefixtures("soon", "encoded")
@pytest.mark.parametrize("by", ["words", "vectors"])
async def test_searches_of_which_a_third_meet_faults(lucene: Lucene, by: str) -> None:
    built(lucene, PASSAGES, more=ENCODED)
    queries, fake = [f"{PASSAGES[i % 200].text[:60]} {i % 7}" for i in range(400)], lucene.fake
    more = f'{ENCODED}by = "{by}"\ntimeout = 0.4\nconnections = 16'
    retriever = open_index(lucene.described("passages", more=more))
    fake.share, fake.answered = 0.3, 0
    given = await asyncio.gather(*(retriever.search(query, 5) for query in queries))
    await retriever.aclose()
    expected = BM25Index.in_memory(PASSAGES)
    exact = 1 + words.questions(queries) @ words.passages(PASSAGES).T
    for query, near_by, passages in zip(queries, exact, given, strict=True):
        scores = dict(zip([one.id for one in PASSAGES], near_by.tolist(), strict=True))
        if by == "words":
            scores = {one.passage.id: one.score for one in expected.search_blocking(query, 200)}
        best = sorted(scores.values(), reverse=True)[:5]
        assert [one.score for one in passages] == pytest.approx(best, abs=1e-5)
        assert [scores[one.passage.id] for one in passages] == pytest.approx(best, abs=1e-5)
        assert len({one.passage.id for one in passages}) == len(passages)
    assert min(fake.met.values()) > 4
    assert fake.answered >= 400


@pytest.mark.slow
@pytest.mark.usefixtures("soon", "encoded")
def test_a_build_of_which_a_third_of_the_requests_meet_faults(lucene: Lucene, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(60):
        write_jsonl(
            tmp_path / "docs" / f"{number}.jsonl", [Passage(f"{number}/{i}", f"Heron {i} of {number}.") for i in range(20)]
        )
    spec = lucene.described("faulty", more=f"{ENCODED}timeout = 0.4")
    lucene.fake.share = 0.3
    report = build([tmp_path / "docs"], spec)
    assert (report.passages, report.added, report.replaced) == (1200, 1200, 0)
    (tmp_path / "docs" / "7.jsonl").unlink()
    write_jsonl(tmp_path / "docs" / "8.jsonl", [Passage("8/0", "A plum.")])
    report = build([tmp_path / "docs"], spec)
    assert (report.passages, report.added, report.unchanged, report.deleted) == (1161, 1, 58, 1)
    expected = {f"{n}/{i}": (f"Heron {i} of {n}.", n) for n in range(60) for i in range(20) if n not in (7, 8)}
    expected["8/0"] = ("A plum.", 8)
    assert lucene.stored("faulty") == {
        key: sourced(Passage(key, text), f"docs/{n}.jsonl") for key, (text, n) in expected.items()
    }
    assert sum(lucene.fake.met.values()) > 30


@pytest.mark.usefixtures("soon", "encoded")
@pytest.mark.parametrize("by", ["words", "vectors"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_never_ends_is_told(lucene: Lucene, fault: str, by: str) -> None:
    built(lucene, more=ENCODED)
    more = f'{ENCODED}by = "{by}"\npatience = 0.05\n' + ("timeout = 0.4" if fault == "slow" else "")
    lucene.fake.faults = (fault,)
    retriever = open_index(lucene.described("passages", more=more))
    lucene.fake.share = 1.0
    with refused(IndexUnavailable, varies=r"(?<= s: ).*(?=\. Look)"):
        await retriever.search(HERON, 3)
    lucene.fake.share = 0.0
    assert bare((await in_time(lambda: retriever.search(HERON, 1)))[0].passage) == CORPUS[4]
    await retriever.aclose()


async def test_one_that_is_away_and_optional_is_done_without(fakes: Callable[..., Fake], tmp_path: Path) -> None:
    one, two = Lucene(tmp_path, fakes()), fakes()
    built(one)
    two.close()
    servers = "".join(f'[[servers]]\nserver = "{url}"\n' for url in (one.server, two.url))
    (tmp_path / "index.toml").write_text(f"patience = 0.01\noptional = true\n{servers}")
    spec = f"elasticsearch:{tmp_path / 'index.toml'}"
    assert await found(spec, HERON, 1) == [CORPUS[4]]
    assert index_fingerprint(spec) == ""
    (tmp_path / "index.toml").write_text(servers)
    with refused(IndexUnavailable):
        open_index(spec)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("fault", ["wrong", "half", "lost"])
def test_answers_to_notes_that_say_nothing_are_asked_for_again(lucene: Lucene, tmp_path: Path, fault: str) -> None:
    """Taken for an answer, one would make the next note look like another build's; cut in half, a refusal loses its reason."""
    fake = lucene.fake
    fake.faults, fake.share = (fault,), 0.5
    write_jsonl(tmp_path / "passages.jsonl", PASSAGES[:20])
    for seed in range(3):
        fake.chance.seed(seed)
        assert build([tmp_path / "passages.jsonl"], lucene.spec("noted")).passages == 20
        fake.shelves.clear()
    assert fake.met[fault] > 7


def test_two_fields_as_beir_searches_them() -> None:
    """``BM25Search`` of BEIR asks for title and text with best_fields and a tie breaker of .5."""
    _, body = Index(URL, title="title", text="txt", words="", fields="best").by_words("who", 3)
    found = body["query"]["multi_match"]
    assert (found["type"], found["tie_breaker"], found["fields"]) == ("best_fields", 0.5, ["title", "txt"])
    _, body = Index(URL, words="").by_words("who", 3)
    assert body["query"]["multi_match"]["type"] == "cross_fields"
    with refused(InvalidSetting):
        Index(URL, fields="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_a_build_does_not_wait_for_a_server_that_was_never_there(engine: str, tmp_path: Path) -> None:
    spec = f"{engine}:http://127.0.0.1:1/passages"
    with refused(IndexUnavailable):
        build([write_jsonl(tmp_path / "passages.jsonl", CORPUS)], spec)

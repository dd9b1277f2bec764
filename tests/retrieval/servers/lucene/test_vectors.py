"""Vectors in indices of Elasticsearch and OpenSearch: conformance, indices of others, faults, builds that encode and go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi import events
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.servers.lucene.index import Index, field_of, near, numbers, settings_of
from gnothi.retrieval.servers.lucene.writer import LuceneWriter
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import bare, made_up, write_jsonl
from tests.retrieval.servers.lucene.conftest import described, in_time, stored
from tests.retrieval.servers.lucene.fake import FAULTS, Fake, Shelf
from tests.retrieval.servers.lucene.test_search import found

PASSAGES = made_up(7, 200)
URL = "https://host:9200"
Fakes = Callable[..., Fake]


@pytest.fixture(autouse=True)
def encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that needs no weights."""
    monkeypatch.setattr(Encoding, "questions", lambda _: words.questions)
    monkeypatch.setattr(Encoding, "passages", lambda _: words.passages)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)
    monkeypatch.setattr("gnothi.retrying.LONGEST_WAIT", 0.05)
    monkeypatch.setattr("gnothi.retrieval.servers.patience._NEWS", 0.0)


def built(folder: Path, *fakes: Fake, more: str = 'by = "vectors"', passages: Any = CORPUS) -> str:
    """Each server has its share of the passages."""
    more = f'encoder = "words"\n{more}'
    for number, fake in enumerate(fakes):
        source = write_jsonl(folder / f"part {number}.jsonl", passages[number :: len(fakes)])
        build([source], described(folder, fake, index="near", more=more))
    return described(folder, *fakes, index="near", more=more)


class Conformance(RetrieverConformance):
    lexical = False
    more = ""

    @pytest.fixture
    async def retriever(self, fake: Fake, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(built(tmp_path, fake, more=self.more))
        yield retriever
        await retriever.aclose()


class TestVectors(Conformance):
    more = 'by = "vectors"'


class TestByDistance(Conformance):
    more = 'by = "vectors"\ndistance = "euclidean"'


class TestBoth(Conformance):
    more = 'by = "both"'


class TestTwoServers(RetrieverConformance):
    """Scores of one encoder are of one kind: the order is that of one server with all passages."""

    lexical = False

    @pytest.fixture
    async def retriever(self, fakes: Fakes, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(built(tmp_path, fakes(), fakes()))
        yield retriever
        await retriever.aclose()


# --- what is asked of which engine ---------------------------------------------------------------------------------------


def test_elasticsearch_is_asked_for_the_nearest_of_all_shards() -> None:
    vector = np.asarray([0.1, -2.0, 0.5], np.float32)
    params, body = near(Index(URL, encoder="e"), "elasticsearch", vector, 5)
    assert "search_type" not in params
    assert params["allow_partial_search_results"] == "false"
    assert body["knn"] == {"field": "gnothi_vector", "query_vector": [0.100000001, -2.0, 0.5], "k": 5, "num_candidates": 256}
    assert (body["size"], body["_source"]) == (5, ["id", "title", "text", "gnothi_metadata"])
    assert near(Index(URL), "elasticsearch", vector, 700)[1]["knn"]["num_candidates"] == 700


def test_opensearch_is_asked_for_the_nearest_of_each_shard() -> None:
    _, body = near(Index(URL, vectors="v", partial=True), "opensearch", np.asarray([0.5], np.float32), 5)
    assert body["query"] == {"knn": {"v": {"vector": [0.5], "k": 256}}}
    assert (body["size"], body["track_total_hits"]) == (5, 6)


def test_numbers_are_told_apart() -> None:
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
    assert made["index_options"] == {"type": "hnsw"}
    made = field_of(index, "opensearch", 384)
    assert (made["type"], made["dimension"]) == ("knn_vector", 384)
    assert (made["method"]["space_type"], made["method"]["engine"]) == space
    assert (settings_of("elasticsearch"), settings_of("opensearch")) == ({}, {"settings": {"index": {"knn": True}}})


# --- searching -----------------------------------------------------------------------------------------------------------


async def test_an_index_of_others_is_searched_by_a_mapping(fake: Fake, tmp_path: Path) -> None:
    vectors = words.passages([Passage("", "Salted plums keep."), Passage("", "Herons stand in water.")]).tolist()
    field = field_of(Index(URL), fake.engine, words.DIMENSION)  # type: ignore[arg-type]
    shelf = fake.shelves["shop"] = Shelf({"nr": {"type": "long"}, "body": {"type": "text"}, "near": field})
    shelf.put("x1", {"nr": 1, "body": "Salted plums keep.", "near": vectors[0]})
    shelf.put("x2", {"nr": 2, "body": "Herons stand in water.", "near": vectors[1]})
    shelf.put("x3", {"nr": 3, "body": "No vector."})
    shelf.refresh()
    more = 'id = "nr"\ntitle = ""\ntext = "body"\nencoder = "words"\nby = "vectors"\n'
    spec = described(tmp_path, fake, index="shop", more=f'{more}vectors = "near"')
    assert [one.id for one in await found(spec, "salted plums")] == ["1", "2"]
    with pytest.raises(IndexUnavailable, match="no field 'gnothi_vector'"):
        open_index(described(tmp_path, fake, index="shop", more=more))
    with pytest.raises(IndexUnavailable, match=r"'body' is of type text, expected (dense|knn)_vector"):
        open_index(described(tmp_path, fake, index="shop", more=f'{more}vectors = "body"'))


async def test_all_with_the_last_ones_score_are_asked_for(fake: Fake, tmp_path: Path) -> None:
    """The server has them in any order, here that of writing."""
    passages = [Passage(f"{9 - number}", "A heron.") for number in range(10)]
    assert [one.id for one in await found(built(tmp_path, fake, passages=passages), "heron")] == ["0", "1", "2"]


async def test_an_encoder_of_another_size_is_named(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = built(tmp_path, fake)
    monkeypatch.setattr(Encoding, "questions", lambda _: lambda asked: words.questions(asked)[:, :7])
    with pytest.raises(IndexUnavailable, match=r"different dimension \[7\].*the encoder 'words': name the one"):
        await found(spec, "plums")


async def test_more_than_a_server_shows_at_once_is_refused(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.search.MOST", 4)
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.index.MOST", 4)
    spec = built(tmp_path, fake)
    assert len(await found(spec, "heron", 4)) == 4
    with pytest.raises(InvalidSetting, match="got 5, expected at most 4"):
        await found(spec, "heron", 5)


async def test_shards_that_fail_are_declared_or_refused(fake: Fake, tmp_path: Path) -> None:
    built(tmp_path, fake)
    fake.failed = 1
    more = 'encoder = "words"\nby = "vectors"\n'
    with pytest.raises(IndexUnavailable, match="Partial shards failure"):
        await found(described(tmp_path, fake, index="near", more=f"{more}patience = 0.05"), "heron")
    with events.record() as seen:
        assert await found(described(tmp_path, fake, index="near", more=f"{more}partial = true"), "heron")
    assert [(one.servers, one.lacking) for one in seen if isinstance(one, events.Partial)] == [
        (3, (("shard 0 of near", "no disk"),))
    ]


@pytest.mark.parametrize("optional", ["false", "true"])
def test_other_weights_are_noticed(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optional: str) -> None:
    """On a server that may be done without, too: it answers."""
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "first weights")
    spec = built(tmp_path, fake, more=f'by = "vectors"\noptional = {optional}')
    open_index(spec)
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "other weights")
    for act in (lambda: build([tmp_path / "part 0.jsonl"], spec), lambda: open_index(spec)):
        with pytest.raises(IndexUnavailable, match="made by other weights"):
            act()


def test_servers_are_searched_one_way(fakes: Fakes, tmp_path: Path) -> None:
    one, two = fakes(), fakes()
    built(tmp_path, one)
    servers = "\n".join(
        f'[[servers]]\nserver = "{fake.url}"\nindex = "near"\nby = "{by}"' for fake, by in ((one, "words"), (two, "vectors"))
    )
    (tmp_path / "index.toml").write_text(f'encoder = "words"\n{servers}')
    with pytest.raises(IndexUnavailable, match="searched by vectors and by words"):
        open_index(f"{one.engine}:{tmp_path / 'index.toml'}")


# --- faults --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("soon")
@pytest.mark.slow
async def test_a_thousand_searches_of_which_a_third_meet_faults(fake: Fake, tmp_path: Path) -> None:
    built(tmp_path, fake, passages=PASSAGES)
    queries = [f"{PASSAGES[i % 200].text[:60]} {i % 7}" for i in range(1000)]
    more = 'encoder = "words"\nby = "vectors"\ntimeout = 0.4\nconnections = 16'
    retriever = open_index(described(tmp_path, fake, index="near", more=more))
    fake.share, fake.answered = 0.3, 0
    given = await asyncio.gather(*(retriever.search(query, 5) for query in queries))
    await retriever.aclose()
    exact = 1 + words.questions(queries) @ words.passages(PASSAGES).T
    place = {one.id: number for number, one in enumerate(PASSAGES)}
    for scores, passages in zip(exact, given, strict=True):
        best = np.sort(scores)[::-1][:5]
        assert [one.score for one in passages] == pytest.approx(best.tolist(), abs=1e-5)
        assert [scores[place[one.passage.id]] for one in passages] == pytest.approx(best.tolist(), abs=1e-5)
        assert len({one.passage.id for one in passages}) == len(passages)
    assert min(fake.met.values()) > 10
    assert fake.answered >= 1000


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_never_ends_is_told(fake: Fake, tmp_path: Path, fault: str) -> None:
    built(tmp_path, fake)
    more = 'encoder = "words"\nby = "vectors"\npatience = 0.05\n' + ("timeout = 0.4" if fault == "slow" else "")
    fake.faults = (fault,)
    retriever = open_index(described(tmp_path, fake, index="near", more=more))
    fake.share = 1.0
    with pytest.raises(IndexUnavailable, match="did not answer for"):
        await retriever.search("heron fish water", 3)
    fake.share = 0.0
    assert bare((await in_time(lambda: retriever.search("heron fish water", 1)))[0].passage) == CORPUS[4]
    await retriever.aclose()


# --- building ------------------------------------------------------------------------------------------------------------


def vectors_of(fake: Fake) -> dict[str, list[float]]:
    return {one["id"]: one["gnothi_vector"] for one in fake.shelves["near"].documents.values()}


def test_vectors_come_with_the_passages_or_not_at_all(fake: Fake, tmp_path: Path) -> None:
    built(tmp_path, fake)
    expected = dict(zip((one.id for one in CORPUS), words.passages(CORPUS).tolist(), strict=True))
    assert {key: pytest.approx(one) for key, one in vectors_of(fake).items()} == expected
    with pytest.raises(IndexUnavailable, match="built with vectors: got no encoder"):
        build([tmp_path / "part 0.jsonl"], f"{fake.engine}:{fake.url}/near")
    build([tmp_path / "part 0.jsonl"], f"{fake.engine}:{fake.url}/bare")
    with pytest.raises(IndexUnavailable, match="built without vectors: got an encoder"):
        build([tmp_path / "part 0.jsonl"], described(tmp_path, fake, index="bare", more='encoder = "words"'))
    with pytest.raises(InvalidSetting, match="expected a field of its own"):
        build([tmp_path / "part 0.jsonl"], described(tmp_path, fake, index="odd", more='encoder = "e"\nvectors = "text"'))


def test_a_build_goes_on_and_encodes_what_is_new(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    counted = words.Counted()
    monkeypatch.setattr(Encoding, "passages", lambda _: counted)
    first, second = PASSAGES[:50], [Passage(f"second {one.id}", one.text) for one in PASSAGES[50:80]]
    folder, spec = tmp_path / "docs", described(tmp_path, fake, index="near", more='encoder = "words"')
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
    assert {key: bare(one) for key, one in stored(fake, "near").items()} == {one.id: one for one in [*first, *second]}
    expected = dict(zip(vectors_of(fake), words.passages(list(stored(fake, "near").values())).tolist(), strict=True))
    assert vectors_of(fake) == {key: pytest.approx(one) for key, one in expected.items()}
    assert fake.vectors_sent == 0


@pytest.mark.usefixtures("soon")
@pytest.mark.slow
def test_a_build_of_which_a_third_of_the_requests_meet_faults(fake: Fake, tmp_path: Path) -> None:
    fake.share = 0.3
    built(tmp_path, fake, passages=PASSAGES, more='by = "vectors"\ntimeout = 0.4')
    assert {key: bare(one) for key, one in stored(fake, "near").items()} == {one.id: one for one in PASSAGES}
    expected = dict(zip((one.id for one in PASSAGES), words.passages(PASSAGES).tolist(), strict=True))
    assert {key: pytest.approx(one) for key, one in vectors_of(fake).items()} == expected
    assert sum(fake.met.values()) > 3

"""The real clients against a server of ours: conformance, indices of others, what is refused before the first search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from gnothi import events
from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.types import Passage
from tests.retrieval.documents import bare
from tests.retrieval.servers.lucene.conftest import described
from tests.retrieval.servers.lucene.fake import Fake, Shelf

Built = Callable[..., str]
HERON = "heron fish water"


async def found(spec: str, query: str, k: int = 3) -> list[Passage]:
    retriever = open_index(spec)
    try:
        return [bare(one.passage) for one in await retriever.search(query, k)]
    finally:
        await retriever.aclose()


class TestOneServer(RetrieverConformance):
    @pytest.fixture
    async def retriever(self, built: Built) -> AsyncIterator[Retriever]:
        retriever = open_index(built())
        yield retriever
        await retriever.aclose()


class TestTwoServers(RetrieverConformance):
    """Ranks count: scores of two servers are not of one kind."""

    expected: Mapping[str, str] = MappingProxyType({key: EXPECTED[key] for key in (HERON, "naïve quoted text")})

    @pytest.fixture
    async def retriever(self, built: Built, fakes: Callable[..., Fake], tmp_path: Path) -> AsyncIterator[Retriever]:
        one, two = fakes(), fakes()
        built(CORPUS[:3], on=one, index="part")
        built(CORPUS[3:], on=two, index="part")
        retriever = open_index(described(tmp_path, one, two, index="part"))
        yield retriever
        await retriever.aclose()


async def test_an_index_of_others_is_searched_by_a_mapping(fake: Fake, tmp_path: Path) -> None:
    shelf = fake.shelves["shop"] = Shelf({"nr": {"type": "long"}, "body.content": {"type": "text"}})
    shelf.put("x1", {"nr": 1, "body": {"content": ["Salted plums.", "They keep for a year."]}})
    shelf.put("x2", {"nr": 2, "body": {}})
    shelf.put("x3", {"nr": 3, "body.content": "Herons."})
    shelf.refresh()
    fields = 'text = "body.content"\ntitle = ""\nwords = ""\nprefix = "shop/"\n'
    spec = described(tmp_path, fake, index="shop", more=f'id = "nr"\n{fields}')
    assert await found(spec, "salted plums") == [Passage("shop/1", "Salted plums.\nThey keep for a year.")]
    assert await found(spec, "heron") == [Passage("shop/3", "Herons.")]
    assert index_fingerprint(spec) == ""
    assert await found(described(tmp_path, fake, index="shop", more=f'id = "_id"\n{fields}'), "heron") == [
        Passage("shop/x3", "Herons.")
    ]


async def test_what_does_not_fit_is_said_before_the_first_search(fake: Fake, built: Built, tmp_path: Path) -> None:
    built(index="there")
    with pytest.raises(IndexUnavailable, match=r"says 404: no such index \[nothing\]"):
        open_index(f"{fake.engine}:{fake.url}/nothing")
    with pytest.raises(IndexUnavailable, match="has no field 'body'"):
        open_index(described(tmp_path, fake, index="there", more='text = "body"'))
    with pytest.raises(IndexUnavailable, match="'text' cannot be sorted by"):
        open_index(described(tmp_path, fake, index="there", more='id = "text"'))
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        open_index(f"{fake.engine}:http://127.0.0.1:9/there")
    fake.status, fake.failed = "red", 1
    with pytest.raises(IndexUnavailable, match="is red: 1 of its shards"):
        open_index(f"{fake.engine}:{fake.url}/there")
    open_index(described(tmp_path, fake, index="there", more="partial = true"))


async def test_a_server_of_another_version_is_named_as_that(engine: str, fakes: Callable[..., Fake]) -> None:
    if engine == "opensearch":
        pytest.skip("OpenSearch's client does not say which version it speaks")
    old = fakes(major=7)
    with pytest.raises(IndexUnavailable, match="versions that do not go together"):
        open_index(f"{engine}:{old.url}/there")


async def test_a_server_that_is_no_elasticsearch(engine: str, fakes: Callable[..., Fake], built: Built) -> None:
    if engine == "opensearch":
        pytest.skip("OpenSearch's client does not ask what the server is")
    other = fakes()
    built(on=other, index="there")
    other.engine = "opensearch"
    with pytest.raises(IndexUnavailable, match="not Elasticsearch"):
        open_index(f"{engine}:{other.url}/there")


async def test_secrets_come_from_the_environment(
    fake: Fake, built: Built, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built(index="kept")
    fake.secret = "Basic bWU6ZmlzaA=="
    with pytest.raises(IndexUnavailable, match="says 401"):
        open_index(f"{fake.engine}:{fake.url}/kept")
    asked = f"{fake.engine}:{fake.url.replace('//', '//me@')}/kept"
    with pytest.raises(InvalidSetting, match=f"{fake.engine.upper()}_PASSWORD to the password of me"):
        open_index(asked)
    monkeypatch.setenv(f"{fake.engine.upper()}_PASSWORD", "fish")
    assert await found(asked, HERON, 1) == [CORPUS[4]]
    monkeypatch.setenv("SHOP", "fish")
    assert await found(described(tmp_path, fake, index="kept", more='user = "me"\nsecret = "SHOP"'), HERON, 1) == [CORPUS[4]]
    if fake.engine == "elasticsearch":
        fake.secret = "ApiKey herring"
        monkeypatch.setenv("ELASTICSEARCH_API_KEY", "herring")
        assert await found(f"{fake.engine}:{fake.url}/kept", HERON, 1) == [CORPUS[4]]


async def test_shards_that_fail_are_declared_or_refused(fake: Fake, built: Built, tmp_path: Path) -> None:
    built(index="shards")
    fake.failed = 1
    whole = open_index(described(tmp_path, fake, index="shards", more="patience = 0.05"))
    with pytest.raises(IndexUnavailable, match="Partial shards failure"):
        await whole.search(HERON, 3)
    await whole.aclose()
    part = open_index(described(tmp_path, fake, index="shards", more="partial = true"))
    with events.record() as seen:
        assert await part.search(HERON, 3)
    assert [(event.servers, event.lacking) for event in seen if isinstance(event, events.Partial)] == [
        (3, (("shard 0 of index-shards".replace("index-", ""), "no disk"),))
    ]
    await part.aclose()


def test_the_fingerprint_changes_with_the_passages(built: Built) -> None:
    spec = built(CORPUS[:3], index="changing")
    first = index_fingerprint(spec)
    assert first
    assert index_fingerprint(spec) == first
    built(CORPUS, index="changing")
    assert index_fingerprint(spec) != first


async def test_more_than_a_server_shows_at_once_is_refused(fake: Fake, built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.search.MOST", 2)
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.index.MOST", 2)
    spec = built([Passage(str(i), "A heron.") for i in range(5)], index="many")
    assert len(await found(spec, "heron", 2)) == 2
    with pytest.raises(InvalidSetting, match="at most 2"):
        await found(spec, "heron", 3)
    assert len(fake.shelves["many"].documents) == 5

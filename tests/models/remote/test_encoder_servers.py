"""Encoders behind an API: each text its own vector, whatever the server does; what cannot be is refused in a sentence."""

from __future__ import annotations

import gc
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from gnothi.errors import BudgetSpent, InvalidSetting, ModelUnavailable, UnknownName, UsageError
from gnothi.events import Reranked, record
from gnothi.filtering.encoders import SentenceEncoder
from gnothi.models.remote.budget import Budget, spending
from gnothi.models.remote.embeddings import RemoteEncoder
from gnothi.models.remote.rankings import RemoteReranker
from gnothi.models.remote.refusals import Refused
from gnothi.protocols import Reranker
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.embed import embed
from gnothi.retrieval.dense.encoders import Encoding, named_encoder
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.registry import open_reranker
from gnothi.testing.conformance.reranker import RerankerConformance
from gnothi.types import Passage
from tests.messages import refused
from tests.models.openai_server import Fault, Server, serving
from tests.models.remote.encoder_server import BesideApi, beside, score, vector

ODD = ("reversed", "fewer", "nan", "null", "text", "other", "twice", "empty")
MANY = (200, pytest.param(1000, marks=pytest.mark.slow))
FAULTS: tuple[Fault, ...] = ("429", "429 after", "500", "503 html", "drop", "cut", "json", "deep")

pytestmark = pytest.mark.usefixtures("nothing_from_outside", "swept")


def spec(server: Server, scheme: str = "openai") -> str:
    return f"{scheme}:{server.url}" if scheme == "tei" else f"{scheme}:tiny@{server.url}"


def encoder(server: Server, scheme: str = "openai") -> Any:
    found = named_encoder(spec(server, scheme))
    assert found is not None
    return found


def right(texts: list[str], found: Any) -> bool:
    return bool(np.allclose(found, [vector(text) for text in texts], atol=1e-6))


@pytest.mark.parametrize("scheme", ["openai", "tei"])
def test_each_text_has_its_vector(scheme: str) -> None:
    api = BesideApi()
    with serving(beside(api)) as server:
        found = encoder(server, scheme)
        texts = ["the light", "", "plums and plums"]
        assert right(["the light", " ", "plums and plums"], found(texts, "document", None, False))
        unit = found(["plums"], "document", None, True)
        assert unit.dtype == np.float32
        assert np.allclose(np.linalg.norm(unit, axis=1), 1)
        assert right(["query: plums"], found(["plums"], "query", "query: ", False))
        assert right(["half ?"], found(["half \ud83d"], "document", None, False))
        assert right(["a: b"], found([("a", "b")], "document", None, False))
        assert found([], "document", None, True).shape[0] == 0
        del found
    path, body = api.asked[0]
    assert (path, body) == (
        ("/v1/embeddings", {"model": "tiny", "input": ["the light", " ", "plums and plums"]})
        if scheme == "openai"
        else ("/v1/embed", {"inputs": ["the light", " ", "plums and plums"], "truncate": True})
    )


@pytest.mark.parametrize("scheme", ["openai", "tei"])
@pytest.mark.parametrize("many", MANY)
def test_of_many_requests_with_faults_none_is_lost(scheme: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.models.remote.embeddings.ITEMS", 1)
    monkeypatch.setattr("gnothi.models.remote.embeddings.TEI_ITEMS", 1)
    api = BesideApi(odd=lambda n: ODD[n // 11 % len(ODD)] if n % 11 == 0 else None)
    with serving(beside(api, fault=lambda n: FAULTS[n // 7 % len(FAULTS)] if n % 7 == 0 else None)) as server:
        texts = [f"text {n} of many" for n in range(many)]
        assert right(texts, encoder(server, scheme)(texts, "document", None, False))
        assert set(server.faults) == set(FAULTS)
        assert server.most_at_once <= 16
        assert len(server.posts) > 1.2 * many


@pytest.mark.parametrize(
    ("scheme", "odd"),
    [
        *(("openai", odd) for odd in ("fewer", "nan", "null", "text", "twice", "empty")),
        *(("tei", odd) for odd in ("fewer", "nan", "null", "text", "empty")),  # without an index "twice" cannot be told
    ],
)
def test_results_that_stay_wrong_are_refused(scheme: str, odd: str) -> None:
    with serving(beside(BesideApi(odd=lambda _: odd))) as server:
        found = encoder(server, scheme)
        with refused(ModelUnavailable) as told:
            found(["a", "b"], "document", None, False)
    assert "model.retries" not in str(told.value)  # nobody can set it here


@pytest.mark.parametrize("scheme", ["openai", "tei"])
def test_another_interface_is_told_at_once(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def other(_: BesideApi, __: str, ___: dict[str, Any]) -> Any:
        return {"results": []}

    monkeypatch.setattr(BesideApi, "answer", other)
    with serving(beside(BesideApi())) as server:
        with refused(ModelUnavailable):
            encoder(server, scheme)(["a"], "document", None, False)
        assert len(server.posts) == 1


def test_a_server_that_takes_fewer_texts_gets_fewer() -> None:
    api = BesideApi(most=5)
    with serving(beside(api)) as server:
        found, texts = encoder(server), [f"text {n}" for n in range(100)]
        assert right(texts, found(texts, "document", None, False))
        before = len(api.asked)
        assert right(texts, found(texts, "document", None, False))
        assert len(api.asked) - before <= 34  # 3 each, without a refusal: learnt


def test_a_text_that_is_refused_is_told_and_not_asked_again() -> None:
    api = BesideApi()
    with serving(beside(api)) as server, refused(Refused):
        encoder(server)(["a", "a forbidden one"], "document", None, False)
    assert len(api.asked) == 1


def test_queries_are_kept_and_passages_are_not() -> None:
    api = BesideApi()
    with serving(beside(api)) as server:
        for _ in range(2):
            found = encoder(server)
            assert right(["a", "b", "a"], found(["a", "b", "a"], "query", None, False))
            assert right(["c"], found(["c"], "document", None, False))
            del found
            gc.collect()
    assert [body["input"] for _, body in api.asked] == [["a", "b"], ["c"], ["c"]]


def test_from_several_threads() -> None:
    with serving(beside(BesideApi())) as server:
        found, wrong = encoder(server), list[int]()

        def ask(n: int) -> None:
            if not right([f"text {n}"], found([f"text {n}"], "query", None, False)):
                wrong.append(n)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert wrong == []


@pytest.mark.parametrize("usage", [True, False])
def test_tokens_count_to_the_budget(usage: bool) -> None:
    with serving(beside(BesideApi(usage=usage))) as server, spending(Budget(max_tokens=600)) as budget:
        found = encoder(server)
        found(["one two three"], "document", None, False)
        assert budget.prompt_tokens == 3 if usage else budget.prompt_tokens > 0
        assert (budget.estimated_tokens > 0) == (not usage)
        with pytest.raises(BudgetSpent):
            found(["many words " * 200], "document", None, False)


def test_what_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(ModelUnavailable):
        named_encoder("openai:text-embedding-3-small")
    with refused(UsageError):
        named_encoder("tei:")
    with refused(UsageError):
        named_encoder("openai:@http://127.0.0.1:1")
    with refused(InvalidSetting) as told:
        named_encoder("openai:x@http://me:secret@127.0.0.1/v1")
    assert "secret" not in str(told.value)
    with refused(UnknownName):
        named_encoder("opnai:x")
    assert named_encoder("sentence-transformers/all-MiniLM-L6-v2") is None
    with spending(Budget(max_cost=1.0)), refused(InvalidSetting):
        named_encoder("openai:x@http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert isinstance(named_encoder("openai:x"), RemoteEncoder)


def passages(many: int) -> list[Passage]:
    return [Passage(f"p{n}", f"The number of this one is {n}.", f"Title {n}") for n in range(many)]


async def test_an_index_by_its_vectors_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.dense.embed.BATCH", 8)
    source, folder = tmp_path / "texts", tmp_path / "index"
    source.mkdir()
    for n in range(40):
        (source / f"{n}.txt").write_text(f"The keeper of tower {n} was person {n}.")
    build([source], folder)
    api = BesideApi()
    with serving(beside(api)) as server:
        encoding = Encoding(spec(server))
        real = api.odd
        api.odd = lambda n: "fewer" if n > 2 else None  # then it stays broken
        with pytest.raises(ModelUnavailable):
            embed(folder, encoding)
        api.odd = real
        report = embed(folder, encoding)
        assert (report.passages, report.encoded) == (40, 24)  # two batches were kept
        index = DenseIndex.open(folder)
        found = await index.search("keeper of tower 7", 3)
        again = await index.search("keeper of tower 7", 3)
        assert found == again
        assert len(found) == 3
        await index.aclose()
        del index


def test_a_reference_by_an_encoder_behind_an_api() -> None:
    with serving(beside(BesideApi())) as server:
        found = SentenceEncoder(spec(server)).encode([("Who?", Passage("p", "Ada."))])
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


TEXTS = ["the keeper of Orvel", "plums", "the light", "keeper"]
QUERY = "the keeper"


@pytest.mark.parametrize("scheme", ["rerank", "cohere", "jina", "tei"])
async def test_each_text_has_its_score(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("JINA_API_KEY", "jina-key")
    api = BesideApi()
    with serving(beside(api)) as server:
        reranker = open_reranker(spec(server, scheme))
        with record() as seen:
            assert await reranker.score(QUERY, TEXTS) == tuple(score(QUERY, text) for text in TEXTS)
        assert await reranker.score(QUERY, []) == ()
        assert isinstance(seen[0], Reranked)
        assert reranker.name == spec(server, scheme)
        await reranker.aclose()
        sent = [headers.get("authorization") for _, _, headers in server.requests]
        assert sent == ["Bearer jina-key" if scheme == "jina" else "Bearer none"]  # never another's
    texts = {"texts": TEXTS, "truncate": True} if scheme == "tei" else {"documents": TEXTS, "model": "tiny", "top_n": 4}
    assert api.asked == [("/v1/rerank", {"query": QUERY, **texts})]


@pytest.mark.parametrize("odd", ["fewer", "nan", "null", "text", "twice", "empty"])
async def test_scores_that_stay_wrong_are_refused(odd: str) -> None:
    with serving(beside(BesideApi(odd=lambda _: odd))) as server:
        reranker = open_reranker(spec(server, "rerank"))
        with refused(ModelUnavailable):
            await reranker.score(QUERY, TEXTS)
        await reranker.aclose()


async def test_many_texts_in_portions_and_kept() -> None:
    api = BesideApi(most=8)
    texts = [f"the text {n}" for n in range(100)]
    expected = tuple(score(QUERY, text) for text in texts)
    with serving(beside(api)) as server:
        for _ in range(2):
            reranker = open_reranker(spec(server, "rerank"))
            assert await reranker.score(QUERY, texts) == expected
            await reranker.aclose()
            asked = len(api.asked)
            api.most = 0  # what is kept is not asked again
        assert len(api.asked) == asked


def test_rerankers_that_cannot_be_opened() -> None:
    with refused(UsageError):
        open_reranker("rerank:bge")
    with refused(UsageError):
        open_reranker("tei:")
    with spending(Budget(max_cost=1.0)), refused(InvalidSetting):
        open_reranker("cohere:rerank-v3.5")


class TestRemoteReranker(RerankerConformance):
    @pytest_asyncio.fixture(params=["rerank", "tei"])
    async def reranker(self, request: pytest.FixtureRequest) -> AsyncIterator[Reranker]:
        with serving(beside(BesideApi())) as server:
            found = RemoteReranker(request.param, spec(server, request.param).partition(":")[2])
            yield found
            await found.aclose()

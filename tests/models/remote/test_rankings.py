"""Re-rankers behind an API: each text its own score, whatever the server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gnothi.errors import InvalidSetting, ModelUnavailable, UsageError
from gnothi.events import Reranked, record
from gnothi.models.remote.budget import Budget, spending
from gnothi.models.remote.rankings import RemoteReranker
from gnothi.protocols import Reranker
from gnothi.retrieval.registry import open_reranker
from gnothi.testing.conformance.reranker import RerankerConformance
from tests.models.openai_server import Fault, Server, serving
from tests.models.remote.beside_server import BesideApi, beside, score

ODD = ("reversed", "fewer", "nan", "null", "text", "twice", "empty")
FAULTS: tuple[Fault, ...] = ("429", "429 after", "500", "503 html", "drop", "cut", "json", "deep")
TEXTS = ["the keeper of Orvel", "plums", "the light", "keeper"]
QUERY = "the keeper"

pytestmark = pytest.mark.usefixtures("swept")


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COHERE_API_KEY", "JINA_API_KEY", "RERANK_API_KEY", "TEI_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)


def spec(server: Server, scheme: str = "rerank") -> str:
    return f"{scheme}:{server.url}" if scheme == "tei" else f"{scheme}:tiny@{server.url}"


@pytest.mark.parametrize("scheme", ["rerank", "cohere", "jina", "tei"])
async def test_each_text_has_its_score(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("scheme", ["rerank", "tei"])
@pytest.mark.parametrize("many", [200, pytest.param(1000, marks=pytest.mark.slow)])
async def test_of_many_requests_with_faults_none_is_lost(scheme: str, many: int) -> None:
    api = BesideApi(odd=lambda n: ODD[n // 11 % len(ODD)] if n % 11 == 0 else None)
    with serving(beside(api, fault=lambda n: FAULTS[n // 7 % len(FAULTS)] if n % 7 == 0 else None)) as server:
        reranker = RemoteReranker(scheme, spec(server, scheme).partition(":")[2])
        queries = [f"the keeper {n}" for n in range(many)]
        found = await asyncio.gather(*(reranker.score(query, TEXTS) for query in queries))
        assert found == [tuple(score(query, text) for text in TEXTS) for query in queries]
        assert set(server.faults) == set(FAULTS)
        assert len(server.posts) > 1.2 * many
        await reranker.aclose()


@pytest.mark.parametrize("odd", ["fewer", "nan", "null", "text", "twice", "empty"])
async def test_results_that_stay_wrong_are_refused(odd: str) -> None:
    with serving(beside(BesideApi(odd=lambda _: odd))) as server:
        reranker = open_reranker(spec(server))
        with pytest.raises(ModelUnavailable, match="tried 7 times"):
            await reranker.score(QUERY, TEXTS)
        await reranker.aclose()


async def test_many_texts_in_portions_and_kept() -> None:
    api = BesideApi(most=8)
    texts = [f"the text {n}" for n in range(100)]
    expected = tuple(score(QUERY, text) for text in texts)
    with serving(beside(api)) as server:
        for _ in range(2):
            reranker = open_reranker(spec(server))
            assert await reranker.score(QUERY, texts) == expected
            await reranker.aclose()
            asked = len(api.asked)
            api.most = 0  # what is kept is not asked again
        assert len(api.asked) == asked


async def test_an_answer_that_is_no_ranking_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def other(_: BesideApi, __: str, ___: dict[str, Any]) -> Any:
        return {"object": "list"}

    monkeypatch.setattr(BesideApi, "answer", other)
    with serving(beside(BesideApi())) as server:
        reranker = open_reranker(spec(server))
        with pytest.raises(ModelUnavailable, match="in a form that is not"):
            await reranker.score(QUERY, TEXTS)
        assert len(server.posts) == 1
        await reranker.aclose()


def test_what_cannot_be_opened() -> None:
    with pytest.raises(UsageError, match="expected the server's address, as in rerank:NAME@http"):
        open_reranker("rerank:bge")
    with pytest.raises(UsageError, match="expected the server's address, as in tei:http"):
        open_reranker("tei:")
    with spending(Budget(max_cost=1.0)), pytest.raises(InvalidSetting, match="cannot count what the re-ranker"):
        open_reranker("cohere:rerank-v3.5")


class TestRemoteReranker(RerankerConformance):
    @pytest_asyncio.fixture(params=["rerank", "tei"])
    async def reranker(self, request: pytest.FixtureRequest) -> AsyncIterator[Reranker]:
        with serving(beside(BesideApi())) as server:
            found = RemoteReranker(request.param, spec(server, request.param).partition(":")[2])
            yield found
            await found.aclose()

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.events import Reranked, record
from gnothi.protocols import Reranker
from gnothi.retrieval.registry import open_reranker
from gnothi.retrieval.rerank import CrossEncoderReranker, shared, shares
from gnothi.testing.conformance.reranker import LONG, QUERY, TEXTS, RerankerConformance
from tests.messages import refused
from tests.retrieval.cross_encoders import causal, classifier

MADE: dict[str, Callable[[Path], str]] = {"classifier": classifier, "causal": causal}


@pytest.fixture(scope="module", params=MADE)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return MADE[request.param](tmp_path_factory.mktemp(request.param))


class TestConformance(RerankerConformance):
    @pytest_asyncio.fixture
    async def reranker(self, folder: str) -> AsyncIterator[Reranker]:
        opened = open_reranker(folder)
        yield opened
        await opened.aclose()


async def test_scores_are_those_of_the_library(folder: str) -> None:
    """Against CrossEncoder.predict, which neither batches by length nor reads a common beginning once."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    reranker, peer = CrossEncoderReranker.open(folder), CrossEncoder(folder)
    texts = [*TEXTS, *(f"the harbour of orvel {number}" + " town" * number for number in range(30))]
    for query in (QUERY, "orvel", "where is the heron ? " * 4):
        expected = peer.predict([(query, text) for text in texts], activation_fn=Identity(), convert_to_numpy=True)
        assert await reranker.score(query, texts) == pytest.approx(expected.tolist(), abs=1e-4)
        assert len(set(expected.tolist())) > 10
    await reranker.aclose()


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt_neox", "gemma3", "mistral"])
async def test_a_common_beginning_changes_no_score_whatever_the_architecture(architecture: str, tmp_path: Path) -> None:
    """Some of them attend to a window only, where the shortcut does not apply."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    folder = causal(tmp_path, architecture)
    query = "where is the city of w1 ? who is w2 ? the w3 of w4 is w5 . the w6 of w7 is w8 ."
    texts = ["w1 is the city of w9 .", "w2", "the w3 of w4 is w5 . w6 w7 w8 w9 w10 w11", "w1"]
    reranker = CrossEncoderReranker.open(folder)
    expected = CrossEncoder(folder).predict([(query, text) for text in texts], activation_fn=Identity())
    assert await reranker.score(query, texts) == pytest.approx(expected.tolist(), abs=1e-4)
    await reranker.aclose()


async def test_a_long_query_leaves_the_text_whole(folder: str) -> None:
    reranker = CrossEncoderReranker.open(folder, limit=48)
    one, other = await reranker.score(LONG, ["the lighthouse of orvel w1", "a heron stands w2"])
    assert one != other  # both would be cut off, and score alike, had the query taken all the room
    # What is read of a query is its beginning, whatever the text.
    assert await reranker.score(LONG + " dana brisk", ["the lighthouse of orvel w1"]) == pytest.approx((one,), abs=1e-4)
    await reranker.aclose()


async def test_internal_knowledge_is_not_what_a_long_question_cuts_off(folder: str) -> None:
    reranker = CrossEncoderReranker.open(folder, limit=48)
    known = "the lighthouse of orvel"
    read = reranker.fitted(f"{LONG} which one\n{known}\n{known} w1")
    assert read.endswith(f"which one {known} {known} w1")  # of the question the beginning is lost
    assert len(read.split()) < 48
    much = reranker.fitted("which one\n" + "\n".join([LONG, known, LONG]))
    assert much.startswith("which one the ")
    assert known in much
    assert reranker.fitted("which one\nw1") == "which one w1"
    await reranker.aclose()


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 100))
def test_nobody_gets_more_than_it_asks_for_and_nothing_is_left_over(sizes: list[int], room: int) -> None:
    given = shares(sizes, room)
    assert all(got <= size for got, size in zip(given, sizes, strict=True))
    assert sum(given) == min(room, sum(sizes))
    short = [got for got, size in zip(given, sizes, strict=True) if got < size]
    assert not short or max(short) - min(short) <= 1
    assert not short or all(got == size for got, size in zip(given, sizes, strict=True) if size < min(short))


async def test_a_ranking_is_an_event(folder: str) -> None:
    reranker = open_reranker(folder)
    with record() as events:
        scores = await reranker.score(QUERY, TEXTS)
    (event,) = events
    assert isinstance(event, Reranked)
    assert event.reranker == folder
    assert event.considered == len(TEXTS)
    assert [score for _, score in event.best] == sorted(scores, reverse=True)
    await reranker.aclose()


async def test_of_many_texts_the_event_holds_the_best() -> None:
    from gnothi.retrieval.wrappers import TracedReranker
    from gnothi.testing.retriever import FakeReranker

    reranker = TracedReranker(FakeReranker(lambda _, text: float(text)))
    with record() as events:
        await reranker.score("q", [str(number) for number in range(500)])
    (event,) = events
    assert isinstance(event, Reranked)
    assert [text for text, _ in event.best] == [str(number) for number in range(499, 399, -1)]


def test_what_is_no_reranker(tmp_path: Path) -> None:
    with refused(ModelUnavailable):
        open_reranker("./missing")
    with refused(ModelUnavailable):
        open_reranker(classifier(tmp_path / "encoder", architecture="BertModel"))
    with refused(ModelUnavailable):
        open_reranker(classifier(tmp_path / "three", outputs=3))


async def test_broken_weights_are_told(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker.open(classifier(tmp_path))
    model: Any = reranker._model
    model[0].model.classifier.bias.data.fill_(float("nan"))
    with refused(ModelUnavailable):
        await reranker.score(QUERY, TEXTS)
    await reranker.aclose()


@pytest.mark.parametrize("part", ["classifier", "attention"])
def test_weights_that_are_missing_are_told(tmp_path: Path, part: str) -> None:
    from safetensors.torch import load_file, save_file

    folder = classifier(tmp_path)
    file = Path(folder) / "model.safetensors"
    save_file({key: one for key, one in load_file(file).items() if part not in key}, file, {"format": "pt"})
    with refused(ModelUnavailable):
        CrossEncoderReranker.open(str(folder))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with refused(MissingDependency):
        open_reranker(str(tmp_path))


async def test_of_those_that_ask_the_same_at_once_one_is_scored(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = CrossEncoderReranker.open(folder)
    expected = [await reranker.score(query, TEXTS) for query in (QUERY, "orvel")]
    tokenized: list[object] = []
    tokens = reranker._model.preprocess

    def preprocess(pairs: Any, *more: Any, **given: Any) -> Any:
        tokenized.extend(pairs)
        return tokens(pairs, *more, **given)

    monkeypatch.setattr(reranker._model, "preprocess", preprocess)
    outcomes = reranker._answer([(query, tuple(TEXTS)) for query in (QUERY, "orvel", QUERY)])
    assert outcomes == [pytest.approx(expected[place], abs=1e-4) for place in (0, 1, 0)]
    assert len(tokenized) == 2 * len(TEXTS)
    await reranker.aclose()


def test_what_rows_share() -> None:
    assert shared([[1, 2, 3], [1, 2, 4]]) == 2
    assert shared([[1, 2], [1, 2]]) == 1
    assert shared([[1, 2, 3, 4], [1, 2]]) == 1
    assert shared([[2], [1, 2]]) == 0


def test_code_that_comes_with_a_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {
        "model_type": "evil",
        "architectures": ["EvilForSequenceClassification"],
        "auto_map": {"AutoConfig": "evil.Config"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with refused(ModelUnavailable):
        open_reranker(str(tmp_path))

"""Indexes, graphs and re-rankers by name, and by schemes of other packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting, UnknownName
from gnothi.events import Reranked, Searched, record
from gnothi.graph.registry import GRAPHS, graph_fingerprint, open_graph
from gnothi.protocols import Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.fusion import Hybrid
from gnothi.retrieval.registry import (
    RERANKERS,
    RETRIEVERS,
    index_fingerprint,
    open_index,
    open_reranker,
    reranker_fingerprint,
)
from gnothi.retrieval.wrappers import Traced
from gnothi.testing import FakeReranker, ListedGraph, ScriptedRetriever
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.dense import words


def mine(argument: str) -> Retriever:
    return ScriptedRetriever([Passage("p", argument)], name=f"mine:{argument}")


@pytest.fixture(autouse=True)
def schemes() -> Iterator[None]:
    RETRIEVERS.add("mine", mine)  # type: ignore[arg-type]
    RERANKERS.add("mine", lambda argument: FakeReranker(name=argument))  # type: ignore[arg-type]
    GRAPHS.add("mine", lambda argument: ListedGraph([("a b", "is", argument)]))  # type: ignore[arg-type]
    yield
    for registry in (RETRIEVERS, RERANKERS, GRAPHS):
        registry.remove("mine")


async def test_an_index_of_another_package_is_traced_like_ours() -> None:
    index = open_index("mine:some text")
    with record() as happened:
        (found,) = await index.search("anything", 3)
    assert found.passage.text == "some text"
    assert [type(event) for event in happened] == [Searched]
    assert (index.name, index_fingerprint("mine:x")) == ("mine:some text", "")


async def test_a_folder_says_which_kind_it_is(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("A heron stands in shallow water.")
    build([tmp_path / "text.txt"], tmp_path / "index")
    by_folder, by_scheme = open_index(tmp_path / "index"), open_index(f"bm25:{tmp_path / 'index'}")
    assert await by_folder.search("heron", 1) == await by_scheme.search("heron", 1) != ()
    assert index_fingerprint(tmp_path / "index") == index_fingerprint(f"bm25:{tmp_path / 'index'}") != ""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "gnothi-index.json").write_text(json.dumps({"format": "gnothi-mine"}))
    assert open_index(tmp_path / "theirs").name == f"mine:{tmp_path / 'theirs'}"
    (tmp_path / "theirs" / "gnothi-index.json").write_text(json.dumps({"format": "gnothi-others"}))
    with refused(IndexUnavailable):
        open_index(tmp_path / "theirs")


def test_how_rankings_are_fused_is_for_what_fuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words.embedded(tmp_path / "index", [Passage("p", "a heron")])
    monkeypatch.setattr(Encoding, "questions", lambda _: words.questions)
    for given, weight in ((None, 0.5), (0.25, 0.25), (0.0, 0.0)):
        opened = open_index(f"hybrid:{tmp_path / 'index'}", given)
        assert isinstance(opened, Traced)
        assert isinstance(hybrid := opened._wrapped, Hybrid)
        assert (hybrid.name, hybrid._dense_weight) == (f"hybrid:{tmp_path / 'index'}", weight)
    assert index_fingerprint(f"hybrid:{tmp_path / 'index'}") == index_fingerprint(f"dense:{tmp_path / 'index'}") != ""
    assert index_fingerprint(f"hybrid:{tmp_path / 'index'}") != index_fingerprint(tmp_path / "index")
    with refused(InvalidSetting):
        open_index(f"dense:{tmp_path / 'index'}", 0.5)
    for outside in (2, -0.1, float("nan")):
        with refused(InvalidSetting):
            open_index(f"hybrid:{tmp_path / 'index'}", outside)


async def test_rerankers_and_graphs_have_schemes_too() -> None:
    with record() as happened:
        await open_reranker("mine:words").score("a", ["a b"])
    assert [event.reranker for event in happened if isinstance(event, Reranked)] == ["words"]
    assert (await open_graph("mine:c").link("see a b"))[0].node == "a b"
    assert (reranker_fingerprint("mine:x"), graph_fingerprint("mine:x")) == ("", "")
    assert len(reranker_fingerprint("lab")) == 32


@pytest.mark.parametrize("opening", [open_index, open_graph, open_reranker])
def test_a_scheme_that_does_not_exist_is_told_with_the_nearest(opening: object) -> None:
    with refused(UnknownName):
        opening("mien:x")  # type: ignore[operator]

"""Graphs and re-rankers from the command line: `--graph`, `--set reranker=`, `--set index.reranker=`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gnothi.config import read_settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.retrieval.wrappers import Reranked
from gnothi.session import sources
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import FakeReranker, ListedGraph
from tests.command_line import Json, Run, covered_fact
from tests.messages import complained, refused
from tests.session.opening import open_resources


@pytest.fixture
def reranker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A re-ranker without weights; the specs that were opened."""
    opened: list[str] = []

    def open_reranker(spec: str) -> FakeReranker:
        opened.append(spec)
        return FakeReranker(name=spec)

    monkeypatch.setattr(sources, "open_reranker", open_reranker)
    return opened


@pytest.mark.usefixtures("scripted")
def test_ask_shows_what_was_linked_recalled_and_found(gnothi: Run, reranker: list[str]) -> None:
    subject, true, question = covered_fact()
    given = ["--method", "iekr", "--set", "choose=text", "--set", "reranker=some/model"]
    code, out, _ = gnothi("ask", question, *given)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line[:4] == "    " and line[4:5].strip()][:3] == [
        "link",
        "recall",
        "facts",
    ]
    assert true in out
    assert subject in out
    assert reranker == ["some/model"]


@pytest.mark.usefixtures("scripted")
def test_json_names_the_graph(gnothi_json: Json) -> None:
    *_, question = covered_fact()
    document = gnothi_json("ask", question, "--method", "iekr", "--set", "choose=text", "--set", "m=3")
    assert document["graph"] == "lab"
    assert document["retrievals"] == 1
    assert gnothi_json("ask", question, "--method", "rag")["graph"] is None  # nothing reads one


@pytest.mark.usefixtures("scripted")
def test_a_run_records_graph_reranker_and_searches(gnothi: Run, reranker: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = ["--graph", "lab", "--set", "choose=text", "--set", "iekr.reranker=r", "--set", "index.depth=7"]
    command = ["eval", "lab:one_hop", "--limit", "3", "--method", "iekr,rag", "--out", str(run), *given]
    code, _, err = gnothi(*command)
    assert (code, err) == (0, "")
    assert reranker == ["r"]
    written = tomllib.loads((run / "config.toml").read_text())
    assert written["graph"] == "lab"
    assert written["method"]["iekr"]["reranker"] == "r"
    assert written["searches"] == {"depth": 7}
    complained(gnothi(*command[:-2]))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--graph nowhere", 3),
        ("--set index.rerankr=lab", 2),
        ("--set index.depth=0", 2),
        ("--set index.dense_weight=0.3", 2),
        ("--set index.dense_weight=2", 2),
        ("--set index.dense_weight=-0.1", 2),
        ("--set index.dense_weight=nan", 2),
        ("--set reranker=nowhere/at-all", 3),
        ("--set source=web", 2),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_errors_come_before_the_first_question(
    monkeypatch: pytest.MonkeyPatch, gnothi: Run, scripted: Scripted, arguments: str, code: int
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else its retries of the hub take half a minute
    complained(gnothi("ask", "Who?", "--method", "iekr", "--set", "choose=text", *arguments.split()), code)
    assert not scripted.prompts


async def test_another_model_has_no_graph_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "open_model", lambda *_: Scripted({}, name="some/model"))
    async with open_resources("some/model", None, read_settings(), ["iekr"]) as opened:
        assert opened.graph is None
        with refused(InvalidSetting):
            opened.method("iekr")
    async with open_resources("some/model", None, read_settings(), ["iekr"], "lab") as opened:
        method: Any = opened.method("iekr")
        assert method.graph is opened.graph
        assert opened.retriever is None


async def test_a_graph_named_again_is_shared_and_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    closed: list[str] = []

    class Named(ListedGraph):
        async def aclose(self) -> None:
            closed.append(self.name)

    def open_graph(spec: str) -> ListedGraph:
        opened.append(spec)
        return Named([], spec)

    monkeypatch.setattr(sources, "open_graph", open_graph)
    monkeypatch.setattr(sources, "open_model", lambda *_: Scripted({}, name="m"))
    given = read_settings(overrides=["iekr.graph=g"])
    async with open_resources("m", "lab", given, ["iekr", "rag"], "g") as found:
        method: Any = found.method("iekr")
        assert method.graph is found.graph
    assert (opened, closed) == (["g"], ["g"])


@pytest.mark.usefixtures("scripted")
async def test_searches_are_reranked_for_every_method(reranker: list[str]) -> None:
    given = read_settings(overrides=["index.reranker=r", "index.depth=7"])
    async with open_resources("lab", None, given, ["rag", "seakr"]) as found:
        assert isinstance(found.retriever, Reranked)
        rag: Any = found.method("rag")
        assert rag.retriever is found.retriever
    assert reranker == ["r"]
    with pytest.raises(UnknownName):
        async with open_resources("lab", None, read_settings(overrides=["index.k=7"]), ["rag"]):
            pass

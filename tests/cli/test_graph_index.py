from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.graph.registry import open_graph
from tests.cli.test_index import complains, gnothi

TRIPLES = [
    "relation\ttail\thead\tlabel",
    "IsA\tdrink\ttea\t1",
    "AtLocation\tcup\ttea\t1",
    "IsA\tanimal\ttea\t0",
    "Likes\ttea\tqueen\t1",
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "triples.tsv"
    path.write_text("\n".join(TRIPLES), encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


def test_build_info_search(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gnothi("build", source, "--graph", "--templates", "conceptnet", "--out", out) == 0
    shown = capsys.readouterr()
    assert f"{out}: 3 facts between 4 nodes (3 triples read) from 1 file (0 unchanged)" in shown.out
    assert "1 line left out" in shown.err
    assert "1 relation without a sentence, said by name: Likes." in shown.err
    assert gnothi("info", out) == 0
    shown = capsys.readouterr()
    assert "a knowledge graph, 3 facts between 4 nodes" in shown.out
    assert "  IsA: {head} is a kind of {tail}.\n" in shown.out
    assert gnothi("search", out, "Who likes teas?", "-k", 2) == 0
    shown = capsys.readouterr()
    assert shown.err == "linked: tea\nwithin 2 steps: 3 facts\n"
    assert shown.out.splitlines()[0].endswith("Queen likes tea.  (queen | Likes | tea)")
    assert len(shown.out.splitlines()) == 2


def test_json(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gnothi("build", source, "--graph", "--out", out, "--json") == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["kind"], built["facts"], built["left_out"]) == ("graph", 3, 1)
    assert built["without_sentence"] == ["IsA", "AtLocation", "Likes"]
    assert gnothi("info", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["relations"]["IsA"] == "{head} is a {tail}."
    assert gnothi("search", out, "a cup", "-k", 1, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["linked"] == [{"node": "cup", "start": 2, "end": 5, "text": "cup"}]
    assert (found["facts"], found["capped"], len(found["results"])) == (3, [], 1)
    assert gnothi("search", out, "nothing here", "--json") == 0
    assert json.loads(capsys.readouterr().out)["results"] == []


def test_a_query_that_names_nothing(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    gnothi("build", source, "--graph", "--out", out)
    capsys.readouterr()
    assert gnothi("search", out, "who is it") == 0
    assert "names no node of this graph" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "--graph --words 50",
        "--graph --memory-mb 100",
        "--columns head,relation,tail",
        "--templates conceptnet",
        "--graph --columns head,tail",
        "--graph --templates nowhere.toml",
    ],
)
def test_wrong_flags(source: Path, out: str, capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    complains(capsys, "build", source, "--out", out, *arguments.split())


def test_sources_are_listed_and_deleted(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = source.with_name("other.tsv")
    other.write_text("\n".join([TRIPLES[0], "IsA\tmoth\tinsect\t1"]))
    gnothi("build", source, other, "--graph", "--out", out)

    def listed() -> list[tuple[str, str]]:
        capsys.readouterr()
        assert gnothi("info", out, "--files", "--json") == 0
        return [(one["path"], one["state"]) for one in json.loads(capsys.readouterr().out)["sources"]]

    assert listed() == [(str(other), "read"), (str(source), "read")]
    assert gnothi("delete", out, other, "--json") == 0
    assert json.loads(capsys.readouterr().out)["sources"] == ["other.tsv"]
    assert listed() == [(str(source), "read")]
    assert gnothi("search", out, "moth") == 0
    assert "insect" not in capsys.readouterr().out
    gnothi("delete", out, source)
    assert "remove the folder" in capsys.readouterr().err
    gnothi("build", source, other, "--graph", "--out", out)
    assert len(listed()) == 2


def test_what_a_graph_cannot_do(source: Path, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gnothi("build", source, "--graph", "--out", out)
    capsys.readouterr()
    assert gnothi("delete", out, "tea") == 1
    assert "no file or passage has the name 'tea'" in capsys.readouterr().err
    complains(capsys, "build", source, "--out", out)
    (tmp_path / "a.txt").write_text("Some text.")
    gnothi("build", tmp_path / "a.txt", "--out", tmp_path / "index")
    capsys.readouterr()
    complains(capsys, "build", source, "--graph", "--out", tmp_path / "index", code=3)


def test_invalid_lines(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text("\n".join([*TRIPLES, "broken", "IsA\tdrink\tmilk\t1"]))
    complains(capsys, "build", source, "--graph", "--out", out)
    assert gnothi("build", source, "--graph", "--out", out, "--skip-invalid") == 0
    shown = capsys.readouterr()
    assert "1 invalid line left out" in shown.err
    assert "4 facts" in shown.out


def test_an_unfinished_graph_is_told(source: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    gnothi("build", source, "--graph", "--out", out)
    source.write_text("broken")
    assert gnothi("build", source, "--graph", "--out", out) == 2
    capsys.readouterr()
    assert gnothi("info", out) == 0
    assert "3 facts" in capsys.readouterr().out


async def test_the_laboratorys_graph_links_its_questions() -> None:
    graph = open_graph("lab")
    mentions = await graph.link("Which book is older, A Paper Voyage or A Hidden Voyage?")
    assert [mention.node for mention in mentions] == ["A Paper Voyage", "A Hidden Voyage"]
    found = await graph.neighbourhood(["A Paper Voyage"], 1, 10)
    assert all(fact.text.endswith(f"of A Paper Voyage is {fact.tail}.") for fact in found.facts)
    await graph.aclose()

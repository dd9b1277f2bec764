"""Every program runs in its smallest form and prints one JSON document."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import uncertainty
from tests.benchmarks.conftest import Document, Program
from tests.preloaded import Preloaded

ROOT = Path(__file__).parents[2]
SMALL = ["--layers", "2", "--hidden", "64", "--tokens", "3"]


@pytest.mark.slow
def test_all_are_listed(program: Program) -> None:
    listed = program("benchmarks").stdout
    names = (
        "uncertainty throughput memory scaling retrieval graph keqa black_box skill_rag guarantee panel probe "
        "first_row learned cascade_promise real_self_knowledge"
    )
    for name in names.split():
        assert f"{name} " in listed
    assert "_shared" not in listed


@pytest.mark.slow
def test_uncertainty(
    preloaded: Preloaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It starts ten processes, forked here from one that has torch: how much memory they take is not tested."""
    monkeypatch.setattr(sys, "executable", str(preloaded.client(tmp_path / "python")))
    few = ["--sizes", "40:20", "--k", "3", "--inner", "1", "--repeats", "1", "--threads", "1", "--json"]
    uncertainty.main([*few, *SMALL])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert list(result["multiples_of_floor"]) == ["floor", "ours, cold", "ours, warm", "library", "procedure"]
    assert result["multiples_of_floor"]["floor"]["median"] == 1.0
    assert len(result["seconds"]) == 1
    assert result["targets_met"] == {}


@pytest.mark.slow
def test_throughput(document: Document) -> None:
    found = document(
        "benchmarks.throughput", "--questions", "4", "--alone", "2", "--concurrency", "4", "--set", "signal.samples=2"
    )
    assert list(found["levels"]) == ["1", "4", "4 in 2 processes"]
    assert found["levels"]["4 in 2 processes"]["per_second"]["median"] > 0
    assert found["levels"]["1"]["questions"] == 2
    assert 0 < found["levels"]["4"]["occupancy"]["median"] <= 1


@pytest.mark.slow
@pytest.mark.timeout(900)  # three processes, each of which opens a model
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_first_row(document: Document) -> None:
    found = document("benchmarks.first_row", "--limit", "3", "--method", "direct", forks=True)
    assert list(found["runs"]) == ["alone", "defaults", "all first"]
    assert all(run["first"]["median"] <= run["total"]["median"] for run in found["runs"].values())
    assert found["runs"]["defaults"]["peak_mb"]["n"] == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory(document: Document) -> None:
    found = document("benchmarks.memory", "--questions", "6", "--every", "2", "--settled", "2", "--set", "signal.samples=2")
    assert [figure["answered"] for figure in found["runs"][0]["figures"]] == [0, 2, 4, 6]
    assert found["runs"][0]["growth"]["resident_mb"]["per_1000"] is not None


@pytest.mark.slow
def test_scaling(document: Document) -> None:
    few = ["--samples", "1,3", "--prompts", "60,90", "--concurrency", "1,2", "--questions", "2", "--corpora", "200,400"]
    found = document("benchmarks.scaling", *few, *SMALL)
    assert len(found["results"]) == 6
    assert all(result["fit"]["exponent"] is not None for result in found["results"].values())


@pytest.mark.slow
def test_keqa(document: Document) -> None:
    found = document("benchmarks.keqa", "--n", "6", "--part", "known", short=False)
    assert list(found) == ["known"]
    assert found["known"]["n"] == 6
    assert set(found["known"]["familiarity"]) <= {"often", "seldom", "never"}
    curve = found["known"]["probability of the answer by T_c"]
    assert sum(level["n"] for level in curve.values()) == 6
    assert all(0 < level["probability"] <= 1 for level in curve.values())


@pytest.mark.slow
def test_black_box(document: Document) -> None:
    found = document("benchmarks.black_box", "--n", "6", short=False)
    assert found["seakr, gram"]["n"] == 6
    assert found["rag, text only"]["calls"] == 1


@pytest.mark.slow
def test_skill_rag(document: Document, tmp_path: Path) -> None:
    small = ["--n", "12", "--training", "20", "--experiences", "10", "--k", "2", "--sentences", "4"]
    found = document("benchmarks.skill_rag", *small, "--plots", str(tmp_path), short=False)
    assert found["accuracy"]["one_hop"]["rag"]["reader_tokens_of_rag"] == 1.0
    assert found["filter"]["useful"]["auroc"] > 0.9
    assert found["speed"]["plain"]["sentences"] == 4
    assert 0 < found["report"]["ece_platt"] < 1
    assert [path.name for path in tmp_path.iterdir()] == ["skill-rag-filter.png"]


@pytest.mark.slow
def test_panel(document: Document) -> None:
    found = document("benchmarks.panel", "--questions", "6")
    assert list(found["multiples_of_gram"]) == ["reply", "gram", "one by one", "panel"]
    assert found["multiples_of_gram"]["gram"]["median"] == 1.0
    assert len(found["seconds"]) == 1


@pytest.mark.slow
def test_probe(document: Document) -> None:
    found = document("benchmarks.probe", "--n", "40", "--batch", "4")
    signals = found["accuracy"]["signals"]
    assert {"gram", "gram, first step", "perplexity", "probe lab", "question lab"} <= signals.keys()
    assert signals["gram"]["ahead_of_u"] == 0
    cost = found["cost"]
    assert cost["per_question"]["probe"]["tokens"] == cost["per_question"]["probe"]["rows"] == 0
    assert cost["per_question"]["draft and U"]["tokens"] > 100 > cost["per_question"]["draft and probe"]["tokens"] > 0
    assert cost["u_to_probe_beyond_draft"]["tokens"] is None  # the probe writes nothing
    assert cost["u_to_probe_alone_cpu"]["median"] > 1
    assert len(cost["u_to_probe_beyond_draft_cpu_interval"]) == 2
    assert len(found["targets_met"]) == 3


@pytest.mark.slow
def test_graph(program: Program) -> None:
    done = program("benchmarks.graph", "--nodes", "2000", "--facts", "6000", "--peers", "--json")
    found = json.loads(done.stdout)  # limits of milliseconds may be broken on a busy machine
    assert found["facts"] == pytest.approx(6000, rel=0.01)
    assert found["resumed_same_bytes"] is True
    assert found["mentions_a_sentence"] > 1
    assert found["ours_mb"] > 0


@pytest.mark.slow
def test_serving(document: Document) -> None:
    small = ["--questions", "4", "--clients", "2", "--few", "2", "--requests", "6", "--set", "signal.samples=2"]
    found = document("benchmarks.serving", *small, forks=True)
    assert found["throughput"]["of_eval"]["median"] > 0
    assert found["streams"]["chunk"]["seconds"]["alone"]["median"] <= found["streams"]["decision"]["seconds"]["alone"]["median"]
    assert found["memory"]["mb"][-1][0] == 6

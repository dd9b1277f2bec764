"""Recipes carried out with a scripted model: what is lacking, what is drawn, going on, the paper's figures beside ours."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi import lab
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.graph.registry import open_graph
from gnothi.reproduce import recipe, resources
from gnothi.reproduce.learning import build
from gnothi.reproduce.outcome import Cell, reach, widening
from gnothi.reproduce.parts import Job, draw_questions, filled, parts
from gnothi.reproduce.rendering import conclusion, document, markdown
from gnothi.reproduce.work import carry_out, outlook
from gnothi.retrieval.folder import read_manifest
from gnothi.session import sources
from gnothi.stats.intervals import Interval
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt
from tests.command_line import Run, stand_in
from tests.messages import refused
from tests.training.recording import RecordingWatch


def job(name: str, tmp_path: Path, **given: Any) -> Job:
    return Job(**{"recipe": recipe.read(name), "out": tmp_path / "out", "limit": 3, **given})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as a person would fill it, with the laboratory's questions and passages in the official forms."""
    folder = tmp_path / "data" / "dpr"
    folder.mkdir(parents=True)
    questions = {"nq-test.qa.csv": lab.questions(lab.world(), "one_hop", 12)[:12]}
    training = lab.training_questions(lab.world(), "one_hop", 30)[:30]
    for name, asked in questions.items():
        lines = [f"{one.text}\t{list(one.answers)!r}\n" for one in asked]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    lines = [f"{one.text}\t{list(one.answers)!r}\n" for one in training]
    (folder / "nq-train.qa.csv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    passages = [f"{number}\t{one.text}\t{one.title}\n" for number, one in enumerate(lab.passages(), start=1)]
    (folder / "psgs_w100.tsv").write_text("id\ttext\ttitle\n" + "".join(passages), encoding="utf-8")
    return folder.parent


# --- before anything starts --------------------------------------------------------------------------------------------


def test_what_is_lacking_is_told_with_the_way_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = outlook(job("keqa/table1", tmp_path, data=tmp_path))
    told = {need.title: need for need in found.lacking}
    assert f"{tmp_path}/hotpotqa/hotpot_train_v1.1.json" in told["HotpotQA"].lacking
    assert told["gpt-3.5-turbo"].lacking == ("the environment variable OPENAI_API_KEY",)
    assert found.estimate is not None
    assert not found.estimate.counted
    with refused(InvalidInput):
        carry_out(job("seakr/table2", tmp_path, data=tmp_path))
    assert not (tmp_path / "out").exists()
    with refused(InvalidSetting):
        carry_out(job("seakr/table2", tmp_path))
    with refused(UnknownName):
        outlook(job("seakr/table2", tmp_path, data=tmp_path, only=("trivia",)))


def test_another_version_of_a_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "selfaware").mkdir()
    (tmp_path / "selfaware" / "SelfAware.json").write_text("{}", encoding="utf-8")
    found = outlook(job("skill-rag/table1", tmp_path, data=tmp_path, only=("selfaware",)))
    (warning,) = [need.warning for need in found.needs if need.warning]
    assert "SelfAware.json is not the file that was looked at here" in warning


def test_the_outlook_counts_and_guesses(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "any")
    found = outlook(job("seakr/table6", tmp_path, data=data, only=("nq",), limit=5))
    assert not found.lacking
    assert found.questions == {"nq": 5}
    assert found.estimate is not None
    assert found.estimate.answers == 15
    assert "hours of one data-centre GPU" in found.estimate.words
    assert "GB" in found.estimate.words


# --- drawing -----------------------------------------------------------------------------------------------------------


def test_a_sample_is_random_stable_and_in_order(data: Path, tmp_path: Path) -> None:
    (part,) = parts(job("seakr/table6", tmp_path, data=data, only=("nq",), limit=5))
    chosen = [one.id for one in part.sampled_questions().questions]
    assert chosen == sorted(chosen, key=int) != ["1", "2", "3", "4", "5"]
    assert chosen == [one.id for one in part.sampled_questions().questions]
    every = lab.questions(lab.world(), "one_hop", 12)[:12]
    assert draw_questions(every, 40, 0) == every == draw_questions(every, None, 0)
    assert draw_questions(every, 5, 0) != draw_questions(every, 5, 1)


def test_nothing_is_learnt_from_what_is_asked(data: Path, tmp_path: Path) -> None:
    (part,) = parts(job("seakr/table6", tmp_path, data=data, only=("nq",), limit=5))
    asked = {one.id for one in part.sampled_questions().questions}
    rest = {one.id for one in part.to_learn_from(part.questions, None)}
    assert len(rest) == 7
    assert not rest & asked


def test_places_are_filled_or_told() -> None:
    assert filled({"judge": "{j}", "k": 3}, {"j": "/x"}) == {"judge": "/x", "k": 3}
    with refused(UnknownName):
        filled({"judge": "{other}"}, {"j": "/x"})


def test_a_graph_is_built_once_with_its_sentences(tmp_path: Path) -> None:
    (tmp_path / "medical").mkdir()
    triples = tmp_path / "medical" / "triples.tsv"
    triples.write_text("head\trelation\ttail\naspirin\tisaningradientof\tAlka-Seltzer\n", encoding="utf-8")
    found = parts(job("iekr/table5", tmp_path, data=tmp_path))
    watch = RecordingWatch()
    for _ in range(2):
        build(found, watch)
    assert len(watch.messages) == 1
    graph = open_graph(str(tmp_path / "gnothi" / "medical"))
    facts = asyncio.run(graph.neighbourhood(["aspirin"], 1, 10)).facts
    assert [fact.text for fact in facts] == ["Aspirin is an ingredient of Alka-Seltzer."]
    assert found[0].index == found[0].graph == str(tmp_path / "gnothi" / "medical")


# --- carrying out ------------------------------------------------------------------------------------------------------


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Answers rightly from passages, and every other question from memory, where it is sure."""
    every = [*lab.questions(lab.world(), "one_hop", 12)[:12], *lab.training_questions(lab.world(), "one_hop", 30)[:30]]
    answers = {one.text: (number % 2 == 0, one.answers[0]) for number, one in enumerate(every)}

    def reply(prompt: Prompt) -> Reply:
        known, answer = answers[prompt.question]
        if prompt.passages or known:
            return Reply(f"So the answer is {answer}.", doubt=0.0)
        return Reply("So the answer is nobody.", doubt=5.0)

    model = Scripted(reply, name="some/model")
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    return model


def test_a_recipe_in_earnest_and_again(knowing: Scripted, data: Path, tmp_path: Path) -> None:
    """An index is built, a threshold is chosen, rows are run; the same call does nothing again."""
    watch = RecordingWatch()
    one = job("seakr/table6", tmp_path, data=data, only=("nq",), model="some/model")
    found = carry_out(one, watch)
    steps = [line.removeprefix("step: ") for line in watch.messages if line.startswith("step: ")]
    assert [step.split(" of ")[0] for step in steps] == ["index", "threshold", "rows"]
    assert read_manifest(data / "gnothi" / "wikipedia-2018-best").fields == "best"
    (on,) = found.data
    assert [row.label for row in on.rows] == ["SeaKR", "FLARE", "DRAGIN"]
    assert on.metrics == ["em", "f1"]
    assert on.rows[0].cells[0].paper == pytest.approx(0.31)
    calls, kept = len(knowing.prompts), document(found)
    watch.messages.clear()
    assert document(carry_out(one, watch)) == kept
    assert len(knowing.prompts) == calls
    assert not any(line.startswith("step: index") for line in watch.messages)


def test_only_a_data_set_and_a_row(scripted: Scripted, tmp_path: Path) -> None:  # noqa: ARG001
    found = carry_out(job("keqa/figure4", tmp_path, rehearse=True, only=("strategyqa", "α = 0.4"), limit=2))
    assert [(one.name, [row.label for row in one.rows]) for one in found.data] == [("strategyqa", ["α = 0.4", "α = 0.8"])]
    assert found.data[0].metrics == ["em", "f1", "retrievals"]


def test_a_rehearsal_by_the_command(scripted: Scripted, gnothi: Run, tmp_path: Path) -> None:  # noqa: ARG001
    table = tmp_path / "table.md"
    arguments = ("reproduce", "seakr/table2", "--rehearse", "--limit", "2", "--only", "nq", "--out", str(tmp_path / "out"))
    code, said, err = gnothi(*arguments, "--markdown", str(table))
    assert code == 0, err
    assert "A rehearsal: another model" in said
    text = table.read_text(encoding="utf-8")
    assert "**NaturalQuestions, open**: 2 questions" in text
    assert "| Self-RAG | .323 |" in text
    code, said, _ = gnothi(*arguments, "--json")
    found = json.loads(said)
    assert (code, found["rehearsal"], found["recipe"]) == (0, True, "seakr/table2")
    (on,) = found["data"]
    (cell, *_) = on["rows"][0]["cells"]
    assert (cell["metric"], cell["paper"]) == ("em", 0.256)
    assert cell["inside"] in (True, False)


def test_what_there_is_by_the_command(gnothi: Run, tmp_path: Path) -> None:
    code, said, _ = gnothi("list", "recipes")
    assert code == 0
    assert all(f"  {name} " in said for name in recipe.names())
    code, said, _ = gnothi("list", "recipes", "--json")
    assert [one["recipe"] for one in json.loads(said)] == list(recipe.names())
    flat = " ".join(gnothi("reproduce", "iekr/table7")[1].split())
    assert "It needs" in flat
    assert "Licence: CC BY-SA 4.0" in flat
    flat = " ".join(gnothi("reproduce", "iekr/table7", "--data", str(tmp_path))[1].split())
    assert "Lacking" in flat
    assert "inhouse_split_qids.txt" in flat


# --- figures -----------------------------------------------------------------------------------------------------------


def cell(paper: float | None, bounds: tuple[float, float] | None) -> Cell:
    return Cell("em", paper, 0.3, None if bounds is None else Interval(*bounds))


@pytest.mark.parametrize(
    ("one", "inside"),
    [
        (cell(0.25, (0.2, 0.4)), True),
        (cell(0.2, (0.2, 0.4)), True),
        (cell(0.41, (0.2, 0.4)), False),
        (cell(None, (0.2, 0.4)), None),
        (cell(0.3, None), None),
    ],
)
def test_whether_a_figure_lies_in_an_interval(one: Cell, inside: bool | None) -> None:
    assert one.inside is inside


@pytest.mark.parametrize(
    ("ours", "paper", "population", "expected"),
    [
        (500, 500, None, 0.834),
        (3610, 3610, 3610, 1.0),
        (500, 3610, 3610, 0.965),
        (100, 500, 1000, 0.95),
        (500, 50, None, 0.446),
    ],
)
def test_how_many_figures_a_perfect_replication_would_have(
    ours: int, paper: int, population: int | None, expected: float
) -> None:
    """Against draws: two samples of the same right and wrong answers."""
    found = reach(widening(ours, paper, population))
    assert found == pytest.approx(expected, abs=0.001)
    draws = np.random.default_rng(0)
    right = draws.random(population or 200_000) < 0.4
    half = 1.96 * math.sqrt(0.24 / ours)
    means = [[draws.choice(right, size, replace=False, shuffle=False).mean() for size in (ours, paper)] for _ in range(400)]
    assert np.mean([abs(one - other) < half for one, other in means]) == pytest.approx(found, abs=0.07)


def test_a_difference_is_less_sure_than_our_figure() -> None:
    one = Cell("em", 0.35, 0.3, Interval(0.26, 0.34), widening(500, 500))
    assert one.difference == pytest.approx((-0.05 - 0.04 * 2**0.5, -0.05 + 0.04 * 2**0.5))
    assert cell(None, (0.2, 0.4)).difference is None


@pytest.mark.parametrize("ours", [0.0, 1.0])
def test_a_difference_of_shares_is_one_that_there_can_be(ours: float) -> None:
    own = Interval(max(0.0, ours - 0.5), min(1.0, ours + 0.5))
    found = Cell("em", 0.4, ours, own).difference
    assert found is not None
    assert found.low >= -0.4
    assert found.high <= 0.6
    assert Cell("seconds", 0.4, ours, own).difference == pytest.approx((ours - 0.4 - 0.25 * 2**0.5, ours - 0.4 + 0.25 * 2**0.5))


def test_what_was_reproduced_and_what_not(knowing: Scripted, data: Path, tmp_path: Path) -> None:  # noqa: ARG001
    found = carry_out(job("seakr/table6", tmp_path, data=data, only=("nq", "SeaKR"), limit=5, model="some/model"))
    assert found.missing == ("2WikiMultiHopQA", "HotpotQA", "FLARE", "DRAGIN")
    said = conclusion(found)
    assert said.startswith("Reproduced: 1 row of table 6, on questions: 5 of NaturalQuestions, open. Not reproduced: 2Wiki")
    assert "the model is some/model in place of meta-llama/Llama-3.1-8B-Instruct" in said
    assert "some parts are ours (listed in the documentation under papers/seakr)" in said
    assert "of 2 figures" in said
    assert document(found)["expected"] == pytest.approx(2 * reach(widening(5, 500, 3610)))


def test_costs_stand_beside_the_papers(scripted: Scripted, tmp_path: Path) -> None:  # noqa: ARG001
    found = carry_out(job("keqa/table5", tmp_path, rehearse=True, only=("nq-dev",), limit=2))
    (on,) = found.data
    assert on.metrics == ["retrievals", "paper_calls", "paper_tokens", "seconds", "model_calls", "tokens"]
    assert all(cell.ours is not None for row in on.rows for cell in row.cells)
    lines = markdown(found)
    head = next(line for line in lines if line.startswith("|  |"))
    assert "searches: paper | searches: ours (95%)" in head
    assert "| 0.14 |" in next(line for line in lines if line.startswith("| KEQA |"))


def test_resources_are_described_completely() -> None:
    every: Mapping[tuple[str, str], resources.Resource] = resources._read()
    for (kind, _), one in every.items():
        assert one.home.startswith("https://")
        assert all((one.title, one.get, one.licence, one.source))
        assert one.unverified == any(word in one.source for word in ("from memory", "was not seen")) or "as wiki" in one.source
        assert kind != "data" or (one.questions and one.rehearse.startswith("lab"))
        assert kind not in ("corpus", "graph") or (one.files and one.index)

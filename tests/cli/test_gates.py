"""``gnothi calibrate --replay`` on outcomes made up for the purpose, and on a run."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Json, Run
from tests.messages import complained


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """120 questions; perplexity tells what is wrong from memory, retrieval is right in half of all."""
    draw = random.Random(0)
    lines = []
    for number in range(120):
        known, found = draw.random() < 0.5, draw.random() < 0.5
        answer = "Paris" if known else "Rome"
        signals = {"perplexity": 1 + draw.random() + (not known), "energy_score": 20 + draw.random() + known}
        lines.append(
            {
                "question": f"Question {number}?",
                "answers": ["Paris"],
                "no_retrieval": answer,
                "one_retrieval": "Paris" if found else "Lyon",
                "direct": {"answer": answer, **signals},
            }
        )
    path = tmp_path / "some.test.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return str(path)


def test_one_document_per_file(gnothi_json: Json, recorded: str) -> None:
    first, second = gnothi_json("calibrate", "--replay", recorded, recorded)
    assert first == second
    assert (first["n"], first["metric"], first["dataset"]) == (120, "contained", "some.test")
    assert first["oracle"] > max(first["never"], first["always"])
    perplexity, energy = first["signals"]["perplexity"], first["signals"]["energy_score"]
    assert perplexity["auroc"] == pytest.approx(1, abs=0.05)
    assert energy["auroc"] == pytest.approx(1, abs=0.05)
    assert perplexity["chosen"]["gap_closed"] > 0.8
    assert set(perplexity["frontier"][0]) == {"threshold", "accuracy", "retrieval_rate"}
    assert 1.5 < perplexity["chosen"]["threshold"] < 2.5
    assert perplexity["method"] == ""  # a file does not tell; a run does


def test_the_table_fits_80_columns(gnothi: Run, recorded: str) -> None:
    code, out, err = gnothi("calibrate", "--replay", recorded, "--threshold", "perplexity=2", "--search-cost", "0.1")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for said in ("never", "oracle", "perplexity at 2: accuracy", "less 0.1 a retrieval", "<2"):
        assert said in " ".join(out.split())


def test_infinite_thresholds_can_be_shown_everywhere(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.html", tmp_path / "csv"
    shown = ("--html", str(page), "--csv", str(folder), "--plot", f"{page}.svg")
    given = ("--threshold", "perplexity=inf", "--threshold", "energy_score=-inf")  # which retrieves below
    code, out, err = gnothi("calibrate", "--replay", recorded, *given, *shown)
    assert code == 0, err
    for signal, value in (("perplexity", "inf"), ("energy_score", "-inf")):
        assert f"{signal} at {value}: accuracy" in " ".join(out.split())
        assert f"{signal}: the threshold {value} (almost) never retrieves" in err
    assert page.exists()


def test_what_is_best_at_a_price_is_not_called_the_best_accuracy(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ("--search-cost", "0.1", "--threshold", "perplexity=0.5", "--html", str(page))
    code, out, err = gnothi("calibrate", "--replay", recorded, *given)
    assert code == 0, err
    assert "hindsight: accuracy at the threshold that is best for accuracy less 0.1 a retrieval" in " ".join(out.split())
    assert "The best of several signals looks better here than it will on new questions." in " ".join(out.split())
    assert "Accuracy less 0.1 a retrieval is best at " in " ".join(err.split())
    assert "In hindsight: accuracy at the threshold that is best for accuracy less 0.1 a search on" in page.read_text("utf-8")


def test_an_infinite_threshold_is_null_in_json(gnothi: Run, recorded: str) -> None:
    code, out, err = gnothi("calibrate", "--replay", recorded, "--threshold", "perplexity=-inf", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["signals"]["perplexity"]["replayed"]["threshold"] is None
    assert "perplexity: the threshold -inf (almost) always retrieves" in err


def test_questions_without_a_score_are_told(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    records = [json.loads(line) for line in Path(recorded).read_text().splitlines()]
    for number, record in enumerate(records):
        record["direct"] |= {
            "eigen_score": float("nan"),
            "gram": None if number < 7 else number,
            "more": None if number < 7 else 1,
        }
    Path(recorded).write_text("\n".join(map(json.dumps, records)))
    page = tmp_path / "page.html"
    code, out, err = gnothi("calibrate", "--replay", recorded, "--html", str(page), "--csv", str(tmp_path))
    said = " ".join(out.split())
    assert (code, "gram, more: no score for 7 of 120 questions" in said) == (0, True)
    assert "eigen_score: no score for 120 of 120 questions" in said
    assert "perplexity:" not in said
    assert "warning: some.test: eigen_score: there is no score of any question, so it tells nothing" in err
    assert page.read_text("utf-8").count("no score for 7</small>") == 2
    with (tmp_path / "signals.csv").open(encoding="utf-8") as lines:
        missing = {line["signal"]: line["not_measured"] for line in csv.DictReader(lines)}
    assert missing == {"perplexity": "0", "energy_score": "0", "eigen_score": "120", "gram": "7", "more": "7"}


def test_a_threshold_that_decides_nothing_warns_on_stderr(gnothi: Run, recorded: str) -> None:
    code, _, err = gnothi("calibrate", "--replay", recorded, "--threshold", "perplexity=0.5", "--json")
    assert code == 0
    assert "warning: some.test: perplexity: the threshold 0.5 (almost) always retrieves. The scores lie between 1." in err


@pytest.mark.parametrize(
    "arguments",
    [
        "--threshold perplexity",
        "--threshold perplexity=high",
        "--threshold perplexity=nan",
        "--threshold =2",
        "--search-cost nan",
        "--search-cost inf",
        "--search-cost -0.1",
        "--threshold perplexty=2",
        "--metric bleu",
        "--always twice",
        "--surer gram",
        "--never one_retrieval",
        "--never x --always x",
        "--plot picture.xyz",
    ],
)
def test_mistakes(gnothi: Run, recorded: str, arguments: str) -> None:
    complained(gnothi("calibrate", "--replay", recorded, *arguments.split()))


def test_the_frontiers_as_a_picture(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    first, second = tmp_path / "one.png", tmp_path / "two.png"
    for picture in (first, second):
        assert gnothi("calibrate", "--replay", recorded, "--plot", str(picture))[0] == 0
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()


def test_files_of_another_kind(gnothi: Run, tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "?", "answer": "a"}\n')
    for name in ("questions.jsonl", ""):
        complained(gnothi("calibrate", "--replay", str(tmp_path / name)))
    assert gnothi("calibrate", "--replay", str(tmp_path / "absent"))[0] == 2


def test_a_file_may_name_its_answers_as_it_likes(gnothi_json: Json, recorded: str) -> None:
    path = Path(recorded)
    text = path.read_text().replace("no_retrieval", "closed").replace("one_retrieval", "open")
    (before,) = gnothi_json("calibrate", "--replay", recorded)
    path.write_text(text)
    (found,) = gnothi_json("calibrate", "--replay", recorded, "--never", "closed", "--always", "open")
    assert found["names"] == {"never": "closed", "always": "open"}
    assert found["signals"] == before["signals"]


def test_a_line_that_is_not_json_is_named(gnothi: Run, recorded: str) -> None:
    path = Path(recorded)
    path.write_text("{question\n" + path.read_text())
    complained(gnothi("calibrate", "--replay", recorded))


@pytest.mark.usefixtures("scripted")
def test_a_run(gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    assert gnothi("eval", "lab:one_hop", "--method", "direct,rag,seakr", "--limit", "24", "--out", run)[0] == 0
    (found,) = gnothi_json("calibrate", "--replay", run)
    assert (found["n"], found["metric"], found["names"]) == (24, "em", {"never": "direct", "always": "rag"})
    assert {name: signal["method"] for name, signal in found["signals"].items()} == {"gram": "seakr"}
    assert list(found["others"]) == ["seakr"]
    (swapped,) = gnothi_json("calibrate", "--replay", run, "--never", "rag", "--always", "direct")
    assert swapped["never"] == found["always"]
    complained(gnothi("calibrate", "--replay", run, "--metric", "contained"))


def test_one_page_and_tables_of_what_was_recorded(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    page, folder = tmp_path / "made" / "gates.html", tmp_path / "numbers"
    code, out, err = gnothi(
        "calibrate", "--replay", recorded, "--threshold", "perplexity=2", "--html", str(page), "--csv", str(folder)
    )
    assert (code, err) == (0, "")
    assert f"page: {page}" in out
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|@import|url\((?!#)""", text)
    for name in ("ends", "signals", "replayed", "correlations"):
        assert f'data-table="{name}"' in text
    assert text.count("<svg") == 4  # the frontier, a distribution for each signal, reliability
    assert "answers that contain a right one" in text
    assert sorted(file.stem for file in folder.iterdir()) == [*("correlations", "ends", "frontier", "questions", "signals")]
    with (folder / "signals.csv").open(encoding="utf-8") as lines:
        first, second = csv.DictReader(lines)
    assert (first["signal"], first["never"], first["always"]) == ("perplexity", "no_retrieval", "one_retrieval")
    with (folder / "questions.csv").open(encoding="utf-8") as lines:
        found = list(csv.DictReader(lines))
    assert len(found) == 120
    assert 20 < float(found[0]["energy_score"]) < 22
    assert second["signal"] == "energy_score"


def test_a_panel_from_the_first_question_to_a_calibrated_gate(
    scripted: Any, gnothi: Run, gnothi_json: Json, tmp_path: Path
) -> None:
    run, out = str(tmp_path / "run"), str(tmp_path / "made.toml")
    samples = ("--set", "signal.samples=4")
    code, shown, _ = gnothi("eval", "lab", "--method", "panel,rag", "--limit", "40", *samples, "--out", run)
    assert code == 0
    assert "signals measured by panel" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith("run: ")) <= 80
    (found,) = gnothi_json("calibrate", "--replay", run)
    assert found["names"] == {"never": "panel", "always": "rag"}
    assert len(found["signals"]) == 10
    code, shown, _ = gnothi("calibrate", run, "--out", out)
    assert code == 0
    assert shown.partition(":")[0] in found["signals"]  # the most valuable one
    made = gnothi_json("calibrate", run, "--signal", "gram.residual", "--out", out)
    assert made["gate"]["signal"] == "gram"
    assert made["gate"]["settings"]["signal.site"] == "residual"
    given = ("ask", "Who is it?", "--method", "compose", "--calibration", out)
    code, shown, _ = gnothi(*given, "--json")
    assert code == 0
    assert json.loads(shown)["decisions"][0]["threshold"] == pytest.approx(made["gate"]["threshold"])
    complained(gnothi(*given, "--set", "signal.site=ffn"))
    complained(gnothi("ask", "Who is it?", "--method", "seakr", "--set", "form=multi_hop", "--calibration", out))
    assert scripted.prompts


def test_a_panel_asked_once_prints_a_table(scripted: Any, gnothi: Run) -> None:
    code, out, _ = gnothi("ask", "Who is it?", "--method", "panel", "--set", "signal.samples=4")
    assert code == 0
    assert re.search(r"^ {4}signals  ", out, re.MULTILINE)
    assert re.search(r" gram  +-?\d+\.\d+  1 call, \d+ tokens more", out)
    assert re.search(r"perplexity  +\d\.?\d*  at no extra cost", out)
    assert max(map(len, out.splitlines())) <= 80
    assert scripted.prompts


# --- learnt gates ---------------------------------------------------------------------------------------------------


def test_a_gate_is_learnt_and_says_what_it_looks_at(
    gnothi: Run, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # so that no line holds a long path
    picture, page = Path("weights.svg"), Path("page.html")
    written = ("--plot", str(picture), "--html", str(page))
    code, out, err = gnothi("calibrate", "--learn", recorded, "--judge", recorded, "--search-cost", "0.05", *written)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    said = " ".join(out.split())
    for part in (
        "some.test: 120 questions, contained; learnt on",
        "A search costs 0.05 right answers, a wrong answer 0.",
        "cascade",
        'Known at "draft"',
        'Known at "reading": it takes the likelier answer.',
        "evidence says (right): Paris",
        "so it takes: evidence",
    ):
        assert part in said
    assert "perplexity" in picture.read_text("utf-8")
    shown = page.read_text("utf-8")
    assert "Why it searched: one question" in shown
    assert shown.count("<figure>") == 2  # a step each
    assert "Answer taken: evidence" in shown


def test_a_learnt_gate_as_json(gnothi_json: Json, recorded: str) -> None:
    (found,) = gnothi_json("calibrate", "--learn", recorded, "--judge", recorded, "--wrong-cost", "1")
    assert set(found["ways"]) == {"before the search", "after the search", "cascade"}
    assert found["prices"] == {"search": 0.0, "wrong": 1.0, "tokens": 0.0}
    assert found["never"] < found["ways"]["cascade"]["accuracy"] <= found["oracle"]
    assert {"feature", "stage", "differ", "evidence", "both"} == set(found["steps"][-1]["weights"][0])
    assert found["example"]["takes"] == "evidence"


@pytest.mark.parametrize(
    "given",
    [
        "--learn --csv folder",
        "--learn --threshold perplexity=2",
        "--learn --limit 2",
        "--learn --target-harm 0.1",
        "--learn --out gate --html page.html",
        "--replay --wrong-cost 2",
        "--replay --out gate",
        "--replay --learn",
        "--threshold perplexity=2",
        "--judge RECORDED",
        "RECORDED",
    ],
)
def test_options_of_another_way_to_calibrate_are_refused(
    gnothi: Run, recorded: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    complained(gnothi("calibrate", recorded, *(recorded if word == "RECORDED" else word for word in given.split())))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("how", ["--replay", "--learn"])
def test_what_is_not_there_is_told_before_it_is_read(gnothi: Run, recorded: str, how: str) -> None:
    complained(gnothi("calibrate", how))
    complained(gnothi("calibrate", how, f"{recorded}l"))

"""A study's table against figures computed by hand."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from gnothi.errors import InvalidSetting
from gnothi.report.summary import summarise
from gnothi.reproduce import ablation
from gnothi.reproduce import figure as ablation_figure
from gnothi.reproduce import tables as ablation_tables
from gnothi.reproduce.study import Study, parse
from gnothi.runs.rows import Row, jsonable
from tests.messages import refused
from tests.report.rows import row

STUDY: dict[str, Any] = {
    "title": "Three parts",
    "source": "Somebody 2024, table 3",
    "variant": [
        {"label": "whole", "method": "seakr", "paper": {"NQ": {"em": 25.6, "f1": 36.1}}},
        {
            "label": "− worse",
            "method": "seakr",
            "group": "Parts",
            "settings": {"rerank": False, "k": [1, 2]},
            "paper": {"NQ": {"em": 0.25}},
        },
        {"label": "same | same", "method": "seakr", "group": "Parts"},
        {"label": "other", "method": "cot", "group": "Others"},
        {"label": "never run", "method": "skr", "group": "Others", "needs": {"reference": "made by train"}},
    ],
}
# Right answers: 16 of 20; 6 fewer (2 others gained, 8 lost); the same; 10 lost.
RIGHT = {
    "whole": [number < 16 for number in range(20)],
    "− worse": [8 <= number < 18 for number in range(20)],
    "same | same": [number < 16 for number in range(20)],
    "other": [number < 6 for number in range(20)],
}


def rows(label: str, method: str) -> list[Row]:
    action = ("trust", "retrieve")
    return [
        row(
            method,
            number,
            right,
            retrieved=number % 2 == 0,
            uncertainty=number / 20,
            metadata={"right_action": action[number % 2]},
        )
        for number, right in enumerate(RIGHT[label])
    ]


def study(**keys: Any) -> Study:
    return parse({**STUDY, **keys}, "three", "three.toml")


def made(found: Study, runs: dict[str, list[Row]]) -> ablation.Table:
    summaries = {label: summarise(own, "some") for label, own in runs.items()}
    folders = {label: Path("runs") / found.variant(label).folder for label in runs}
    return ablation.document(found, "lab", "some", runs, summaries, folders, {"never run": "needs a reference"})


def plain(table: ablation.Table) -> dict[str, Any]:
    """As JSON."""
    return dict(json.loads(json.dumps(jsonable(table), allow_nan=False)))


@pytest.fixture
def table() -> ablation.Table:
    found = study()
    return made(found, {one.label: rows(one.label, one.method) for one in found.variants if one.label in RIGHT})


@pytest.fixture
def document(table: ablation.Table) -> dict[str, Any]:
    return plain(table)


def test_quality_and_cost_are_those_of_the_rows(document: dict[str, Any]) -> None:
    whole, worse, *_ = document["variants"]
    assert (document["questions"], document["full"], document["metric"]) == (20, "whole", "em")
    assert (whole["em"], worse["em"]) == (0.8, 0.5)
    assert (whole["tokens"], whole["retrieval_rate"], whole["model_calls"]) == (110, 0.5, 2)
    assert whole["intervals"]["tokens"] is None  # they are the same for every question
    low, high = whole["intervals"]["em"]
    assert low < 0.8 < high
    assert worse["settings"] == {"rerank": "false", "k": "1, 2"}
    assert worse["run"] == "runs/worse"
    assert whole["groups"] == {
        "retrieve": {"n": 10, "em": 0.8, "f1": 0.8, "accuracy": 0.8},
        "trust": {"n": 10, "em": 0.8, "f1": 0.8, "accuracy": 0.8},
    }
    assert document["left_out"] == [{"label": "never run", "reason": "needs a reference"}]


def test_differences_are_held_against_mcnemar_and_holm_by_hand(document: dict[str, Any]) -> None:
    tests = {one["label"]: one["difference"] for one in document["variants"]}
    assert tests["whole"] is None
    worse, same, other = (tests[label]["em"] for label in ("− worse", "same | same", "other"))
    assert worse["difference"] == pytest.approx(-0.3)
    assert worse["p"] == pytest.approx(stats.binomtest(2, 10).pvalue, rel=1e-5)
    assert other["p"] == pytest.approx(2 / 2**10, rel=1e-5)
    assert (same["difference"], same["p"], same["interval"]) == (0, 1, None)
    # Holm: the smallest of three times 3, the next times 2, never decreasing.
    assert other["p_holm"] == pytest.approx(3 * 2 / 2**10, rel=1e-5)
    assert worse["p_holm"] == pytest.approx(2 * stats.binomtest(2, 10).pvalue, rel=1e-5)
    assert same["p_holm"] == 1
    assert worse["interval"][0] < -0.3 < worse["interval"][1]


def test_only_questions_that_both_answered_are_compared() -> None:
    found = study()
    whole, other = rows("whole", "seakr"), rows("other", "cot")
    other[0] = row("cot", 0, failed=True)
    document = plain(made(found, {"whole": whole, "other": other[:10]}))
    assert document["variants"][1]["difference"]["em"]["n"] == 9
    assert document["variants"][1]["difference"]["em"]["difference"] == pytest.approx((5 - 9) / 9, rel=1e-5)
    assert any("1 of 10 questions failed" in warning for warning in document["warnings"])


def test_without_gold_answers_there_is_no_difference(tmp_path: Path) -> None:
    found = study()
    bare = {label: [Row("seakr", "q1", "Q?", "a", cost=row("seakr", 1).cost)] for label in ("whole", "− worse")}
    table = made(found, bare)
    assert plain(table)["variants"][1]["difference"] == {}
    assert "− worse" in "\n".join(ablation_tables.markdown(table))
    for save, name in (
        (ablation_tables.save_csv, "t.csv"),
        (ablation_figure.save, "t.png"),
    ):
        save(table, tmp_path / name)
        assert (tmp_path / name).stat().st_size


def test_the_csv_says_what_the_document_says(table: ablation.Table, document: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "new" / "table.csv"
    ablation_tables.save_csv(table, file)
    with file.open(encoding="utf-8", newline="") as opened:
        lines = list(csv.DictReader(opened))
    assert [line["label"] for line in lines] == ["whole", "− worse", "same | same", "other"]
    for line, one in zip(lines, document["variants"], strict=True):
        assert float(line["em"]) == one["em"]
        assert float(line["em_high"]) == one["intervals"]["em"][1]
        assert line["tokens_high"] == ""
        test = (one["difference"] or {}).get("em")
        assert line["difference_em"] == ("" if test is None else str(test["difference"]))
        assert line["p_holm_em"] == ("" if test is None else str(test["p_holm"]))
    assert (lines[0]["paper_NQ_em"], lines[0]["paper_NQ_f1"], lines[1]["paper_NQ_em"]) == ("25.6", "36.1", "0.25")
    assert lines[1]["settings"] == "rerank=false k=1, 2"


def test_the_markdown_is_a_table(table: ablation.Table) -> None:
    lines = ablation_tables.markdown(table)
    assert lines[0] == "Three parts (Somebody 2024, table 3): 20 questions of `some`."
    rows = [line for line in lines if line.startswith("|")]
    cells = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in rows]
    assert len({len(line) for line in cells}) == 1
    head, by_name = cells[0], {line[0]: line for line in cells}
    assert head[-4:] == ["EM less full (95%)", "p", "p, Holm", "paper: NQ EM"]
    assert by_name["**whole**"][-1] == "25.6"
    assert by_name["− worse"][-1] == ".250"
    assert by_name["− worse"][-4].startswith("−.300 (−.")
    assert by_name["same / same"][-4:] == [".000", "1", "1", ""]
    assert by_name["**whole**"][1].startswith(".800 (.")
    assert [line[0] for line in cells[2:]] == ["**whole**", "*Parts*", "− worse", "same / same", "*Others*", "other"]
    assert "Left out: never run (needs a reference)." in lines


def texts(file: Path) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_is_a_forest(table: ablation.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    ablation_figure.save(table, tmp_path / "forest.svg")
    said = texts(tmp_path / "forest.svg")
    for expected in ("− worse", "same | same", "other", ".500", "Three parts: 20 questions of some"):
        assert expected in said
    assert "whole" not in said
    with refused(InvalidSetting):
        ablation_figure.save(table, tmp_path / "forest.txt")


def test_what_is_varied_by_number_is_a_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    labels = ["whole", "− worse", "other"]
    variants = [
        {"label": label, "method": "seakr", "at": at, "series": "KEQA"} for label, at in zip(labels, (1, 5, 20), strict=True)
    ]
    found = study(variant=variants, axis="k: passages")
    table = made(found, {label: rows(label, "seakr") for label in labels})
    ablation_figure.save(table, tmp_path / "curve.svg")
    said = texts(tmp_path / "curve.svg")
    for expected in ("k: passages", "exact match", "KEQA", "1", "5", "20"):
        assert expected in said

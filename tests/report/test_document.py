"""The page, the CSV files and the JSON document say the same; several runs; numbers of gates."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gnothi.calibration import compare as gates
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.report import document as made
from gnothi.report.costs import Prices
from gnothi.report.document import Document, verdict
from gnothi.report.numbers import interval, number, share
from gnothi.report.page.runs import render
from gnothi.report.sections import Section, load_runs
from gnothi.report.spreadsheet import write_csv, write_tables
from gnothi.report.summary import summarise
from gnothi.runs.rows import Row, jsonable
from tests.messages import refused
from tests.report.rows import row
from tests.report.test_page import Page, full, lab_rows, make_run

PRICES = Prices(prompt=0.15, generated=0.6, retrieval=0.001, currency="EUR")


class Tables(HTMLParser):
    """The cells of the page's tables that have a name, by name; small print is joined to its cell by a bar."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] | None = None
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "table":
            name = given.get("data-table")
            self._rows = self.found.setdefault(name, []) if name else None
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th") and self._rows is not None:
            self._rows[-1].append("")
            self._in_cell = True
        elif tag == "small" and self._in_cell and self._rows is not None:
            self._rows[-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell and self._rows is not None:
            self._rows[-1][-1] += data


def document(section: Section, never: str | None = None, always: str | None = None) -> dict[str, Any]:
    """As JSON."""
    return dict(jsonable(made.document(section, None, never, always)))


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def cell(value: Any) -> str:
    return "" if value is None else str(value)


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> Section:
    return load_runs([full(tmp_path_factory.mktemp("full") / "run")])[0]


@pytest.fixture(scope="module")
def typed(section: Section) -> Document:
    return made.document(section, PRICES)


def test_csv_says_what_json_says(section: Section, typed: Document, tmp_path: Path) -> None:
    found = json.loads(json.dumps(jsonable(typed), allow_nan=False))
    names = {file.stem for file in write_tables([typed], [section], tmp_path / "csv")}
    assert names == {
        *("methods", "search", "signals", "frontier", "points", "selective", "risk_coverage", "calibration", "reliability"),
        *("costs", "comparisons", "kinds", "lab", "questions"),
    }
    tables = {name: read(tmp_path / "csv" / f"{name}.csv") for name in names}
    for line, method in zip(tables["methods"], found["methods"], strict=True):
        assert line["dataset"] == "lab"
        for key in ("method", "n", "failures", "em", "f1", "retrieval_rate", "prompt_tokens", "gate_auroc"):
            assert line[key] == cell(method[key]), key
        assert [line["em_low"], line["em_high"]] == list(map(cell, method["intervals"]["em"]))
    (signal,) = found["gates"]["signals"].values()
    assert [(line["threshold"], line["accuracy"]) for line in tables["frontier"]] == [
        (cell(point["threshold"]), cell(point["accuracy"])) for point in signal["frontier"]
    ]
    assert tables["signals"][0]["auroc"] == cell(signal["auroc"])
    assert tables["signals"][0]["chosen_gap_closed"] == cell(signal["chosen"]["gap_closed"])
    for line, one in zip(tables["selective"], found["selective"], strict=True):
        assert [line["aurc"], line["risk_at_0.5"]] == [cell(one["aurc"]), cell(one["at"][1]["risk"])]
    for line, one in zip(tables["costs"], found["costs"], strict=True):
        assert line["money_per_thousand"] == cell(one["money"]["per_thousand"])
        assert line["prompt_tokens_total"] == cell(one["total"]["prompt_tokens"])
    for line, test in zip(tables["comparisons"], found["comparisons"], strict=True):
        assert [line[key] for key in ("first", "metric", "p", "p_holm")] == [
            test["first"],
            test["metric"],
            *map(cell, (test["p"], test["p_holm"])),
        ]
    for line, one in zip(tables["calibration"], found["reliability"], strict=True):
        assert [line["ece"], line["low"]] == [cell(one["ece"]), cell(one["interval"][0])]
    assert len(tables["questions"]) == len(section.rows)
    assert tables["questions"][-1]["error"] == "RuntimeError: broken"


def test_the_page_says_what_json_says(section: Section, typed: Document) -> None:
    found, shown = jsonable(typed), Tables(render([section], [typed])).found
    methods = {line[0]: line for line in shown["methods"][1:]}
    for method in found["methods"]:
        line = methods[method["method"]]
        assert line[2] == f"{share(method['em'])}|{interval(method['intervals']['em'])}"
        assert line[6:11] == [
            number(method[key]) for key in ("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds")
        ]
    (signal,) = found["gates"]["signals"].values()
    line = shown["signals"][1]
    assert line[1] == f"{share(signal['auroc'])}|{interval(signal['interval'])}"
    assert line[3] == f"{share(signal['chosen']['accuracy'])}|{interval(signal['chosen']['interval'])}"
    tests = [line for line in shown["comparisons"] if line[1] != "metric"]
    assert len(tests) == len(found["comparisons"])
    for line, one in zip(shown["selective"][1:], found["selective"], strict=True):
        assert line[0] == one["method"]
        assert f"{share(one['aurc'])}|{interval(one['aurc_interval'])}" in line
    for line, one in zip(shown["costs"][1:], found["costs"], strict=True):
        assert line[1] == f"{int(one['total']['retrievals']):,}"
    for line, method in zip(shown["search"][1:], [one for one in found["methods"] if one["beside"]], strict=True):
        assert line[6].startswith(share(method["search"]["over_search"]["share"]))


def test_gates_are_those_of_gnothi_gates(section: Section, typed: Document) -> None:
    ours = jsonable(typed)["gates"]
    theirs = jsonable(gates.document(gates.read(section.runs[0])))
    for key in ("n", "never", "always", "oracle"):
        assert ours[key] == theirs[key]
    for name, signal in theirs["signals"].items():
        assert ours["signals"][name] == signal
        assert ours["signals"][name]["method"] == "seakr"


def test_methods_are_points_beside_the_frontier(typed: Document) -> None:
    found = jsonable(typed)
    points = {point["method"]: point for point in found["gates"]["points"]}
    assert (points["direct"]["retrieval_rate"], points["rag"]["retrieval_rate"]) == (0, 1)
    assert points["direct"]["accuracy"] == found["gates"]["never"]
    assert points["rag"]["accuracy"] == found["gates"]["always"]


def test_signals_of_several_runs_stand_beside_each_other(tmp_path: Path) -> None:
    ends = [row("direct", i, right=i % 3 != 2) for i in range(12)] + [row("rag", i, retrieved=True) for i in range(12)]
    settings = {"method.rag.k": 3, "method.seakr.signal": "gram"}
    first = make_run(tmp_path / "first", [*ends, *lab_rows(12)], **settings)
    second = make_run(tmp_path / "second", lab_rows(12), **{"method.seakr.signal": "perplexity", "execution.workers": 2})
    (section,) = load_runs([first, second])
    found = document(section)
    assert list(found["gates"]["signals"]) == ["seakr: gram", "seakr (second): gram"]
    assert {one["setting"]: one["values"] for one in found["differences"]} == {
        "methods": ["direct, rag, seakr", "seakr"],
        "method.seakr.signal": ["gram", "perplexity"],
    }
    assert {point["method"] for point in found["gates"]["points"]} == {"direct", "rag", "seakr", "seakr (second)"}


def test_folders_of_the_same_name_keep_their_methods_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name / "run", [row("direct", number) for number in range(3)]) for name in "abc"]
    (section,) = load_runs(runs)
    assert len({one.method for one in section.rows}) == 3
    assert len(section.rows) == 9


def test_settings_that_differ_are_on_the_page(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / str(seed), [row("direct", 1)], seed=seed) for seed in range(2)]
    assert "Settings that differ between the runs" in render(load_runs(runs))


def test_variants_of_a_study_bear_their_labels_and_come_in_its_order(tmp_path: Path) -> None:
    """But for the methods that gates are replayed between: the first of each keeps its name."""
    made = {
        "plain": make_run(tmp_path / "plain", [row("seakr", 1)]),
        "last": make_run(tmp_path / "a", [row("rag", 1)], **{"execution.label": "Standard RAG", "execution.place": 4}),
        "other": make_run(tmp_path / "b", [row("rag", 1)], **{"execution.label": "RAG, k = 5", "execution.place": 3}),
        "part": make_run(tmp_path / "c", [row("seakr", 1)], **{"execution.label": "− re-ranking", "execution.place": 2}),
        "whole": make_run(tmp_path / "d", [row("seakr", 1)], **{"execution.label": "SeaKR", "execution.place": 1}),
        "twin": make_run(tmp_path / "e", [row("seakr", 1)], **{"execution.label": "SeaKR", "execution.place": 5}),
    }
    (section,) = load_runs(list(made.values()))
    named = [one.method for one in section.rows]
    assert named == ["seakr", "SeaKR", "− re-ranking", "rag", "Standard RAG", "SeaKR (e)"]
    assert section.origin["− re-ranking", "q1"] == (made["part"], ("seakr", "q1"))


def test_without_both_ends_nothing_is_replayed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [row("direct", 1), row("seakr", 1, uncertainty=0.4)])
    found = document(load_runs([run])[0])
    assert found["gates"] is None
    assert "rag, which always retrieves" in found["no_gates"]


def test_ends_can_be_named(tmp_path: Path) -> None:
    rows = [
        made
        for n in range(8)
        for made in (
            row("cot", n, right=n % 2 == 0),
            row("direct", n, right=n % 3 == 0),
            row("rag", n, retrieved=True),
            row("seakr", n, uncertainty=n % 7),
        )
    ]
    (section,) = load_runs([make_run(tmp_path / "run", rows)])
    assert document(section)["gates"]["names"] == {"never": "cot", "always": "rag"}
    assert document(section, never="direct")["gates"]["names"] == {"never": "direct", "always": "rag"}
    with refused(UnknownName):
        document(section, never="cott")
    for never, always in (("cot", "cot"), ("rag", None), (None, "cot")):
        with refused(InvalidSetting):
            document(section, never=never, always=always)


@pytest.mark.parametrize("make", [lambda path: make_run(path, []), lambda path: make_run(path, [row("seakr", 1, failed=True)])])
def test_empty_runs_have_documents_and_tables(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    sections = load_runs([make(tmp_path / "run")])
    found: list[Document] = [made.document(sections[0], PRICES)]
    json.dumps(jsonable(found), allow_nan=False)
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "signals.csv").write_text("of an earlier report", encoding="utf-8")
    write_tables(found, sections, tmp_path / "csv")
    assert not (tmp_path / "csv" / "signals.csv").exists()
    assert "<html" in render(sections, found)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd", "@x", "\t=1"])
def test_a_spreadsheet_takes_no_text_for_a_formula(tmp_path: Path, text: str) -> None:
    write_csv([{"answer": text, "n": -1.5}], tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert line == {"answer": f"'{text}", "n": "-1.5"}


# The sentences that a report opens with.


def _said(*rows: Sequence[Row]) -> str:
    return " ".join(verdict(summarise([one for some in rows for one in some], "lab")))


def _rows(method: str, right: int, searched: int = 0, gate: bool = False, of: int = 100) -> list[Row]:
    return [
        row(method, n, right=n < right, retrieved=n < searched, uncertainty=(1.0 if n < searched else 0.0) if gate else None)
        for n in range(of)
    ]


def test_one_method() -> None:
    assert _said(_rows("rag", 50, 100)) == "rag is right in 50% of 100 questions (exact match, 95% interval .40-.60)."


def test_better_than_all_or_maybe_by_chance() -> None:
    assert "rag is right in 90% of 100 questions" in (clear := _said(_rows("rag", 90, 100), _rows("direct", 10)))
    assert clear.endswith("more than every other method.")
    assert "the highest share; the difference from direct may be chance." in _said(_rows("rag", 51, 100), _rows("direct", 50))


def test_a_method_that_was_not_tested_against_the_best_is_not_called_equal() -> None:
    # More than six: each is tested against never and always alone.
    others = [_rows(name, 10, 100) for name in ("ircot", "react", "searchain", "rowen", "dragin")]
    said = _said(_rows("direct", 20), _rows("rag", 89, 100), *others, _rows("flare", 90, 50))
    assert "the highest share; the difference from rag may be chance; it was not tested against ircot, react, sear" in said


def test_what_a_gate_saves() -> None:
    ends = _rows("rag", 16, 20, of=20), _rows("direct", 4, of=20)
    said = _said(*ends, _rows("seakr", 14, 8, gate=True, of=20))
    assert (
        "seakr searches for 40% of the questions. It is right in 70%, against 80% by always searching (rag) and 20% by" in said
    )
    for right, searched, said in (
        (14, 20, "100% of the questions: its gate (almost) always"),
        (4, 0, "0% of the questions: its ga"),
    ):
        gated = _said(*ends, _rows("seakr", right, searched, gate=True, of=20))
        assert f"searches for {said}" in gated
        assert "fires, and so decides nothing" in gated
    # Whether a question is searched for is not what its gate decides step by step, nor what is searched for before.
    first = [replace(one, cost={**one.cost, "retrievals": 1}) for one in _rows("flare", 14, 0, gate=True, of=20)]
    assert "flare searches for 100% of the questions: its gate (almost) never fires" in _said(*ends, first)
    assert "decides nothing" not in _said(*ends, _rows("seakr", 1, 1, gate=True, of=1))


def test_a_gate_is_held_against_both_ends_by_the_same_questions_and_the_same_metric() -> None:
    failed = [row("rag", n, failed=n > 4, retrieved=n < 5) for n in range(40)]
    said = _said(failed, _rows("direct", 10, of=40), _rows("seakr", 30, 20, gate=True, of=40))
    assert "seakr searches for 50% of the questions. It is right in 100% of the 5 questions that all of these answered" in said
    sentences = [
        [row(name, n, answer=f"It is {'gold' if n < right else 'red'}.", uncertainty=0.0) for n in range(40)]
        for name, right in (("direct", 10), ("seakr", 30))
    ]
    assert "It is right in 75%, against 25% by never searching (direct)" in _said(*sentences)


def test_a_mean_of_easy_questions_is_not_more_than_every_other() -> None:
    easy = [row("direct", n, right=n < 36, failed=n >= 60) for n in range(100)]
    said = _said(easy, [row("rag", n, right=n < 55, retrieved=True) for n in range(100)])
    assert "direct is right in 60% of 60 questions" in said
    assert "the highest share; it is behind rag on the questions that both answered." in said


def test_as_many_as_another_is_not_the_most() -> None:
    assert _said(_rows("direct", 25), _rows("rag", 25, 100)).endswith(", the same share as rag.")
    # Of as large a share, the one over more questions.
    few = [row("direct", n, failed=n >= 10) for n in range(20)]
    said = _said(few, _rows("rag", 20, 20, of=20))
    assert said.startswith("rag is right in 100% of 20 questions")
    assert "the same share as direct" in said
    hard = [row("rag", n, right=n < 20, retrieved=True, failed=n >= 40) for n in range(80)]
    assert "more than every other" not in _said(hard, _rows("direct", 40, of=80))


def test_only_questions_with_gold_answers_are_counted() -> None:
    bare = [Row("rag", f"b{n}", "Q?", "yes", cost=row("rag", n).cost) for n in range(90)]
    assert _said(_rows("rag", 5, of=10), bare).startswith("rag is right in 50% of 10 questions")


def test_failures_are_not_missing_gold_answers() -> None:
    assert _said([row("rag", n, failed=True) for n in range(3)]).startswith("Every question failed")
    assert _said([]) == "No question was answered yet."


def test_the_gate_of_another_model_is_not_held_against_this_ones_answers(tmp_path: Path) -> None:
    def answers(n: int) -> list[Row]:
        plain = [row(name, one, right=one < n, retrieved=name == "rag") for name in ("cot", "rag") for one in range(40)]
        return plain + [row("seakr", one, right=one < n, retrieved=one < 20, uncertainty=float(one < 20)) for one in range(40)]

    runs = [make_run(tmp_path / name, answers(n), **{"model.name": name}) for name, n in (("weak", 10), ("strong", 30))]
    (section,) = load_runs(runs)
    found = {one.method: one for one in made.document(section).methods}
    assert found["seakr"].beside
    assert found["seakr"].search
    assert section.foreign() == {"cot (strong)", "rag (strong)", "seakr (strong)"}
    assert found["seakr (strong)"].beside is None
    assert found["seakr (strong)"].search is None
    assert found["seakr (strong)"].gate
    assert found["seakr (strong)"].gate.auroc is None
    assert found["seakr (strong)"].em == 0.75
    with refused(InvalidSetting):
        document(section, always="rag (strong)")
    with refused(InvalidSetting):
        document(section, never="cot (strong)", always="rag")
    assert document(section, never="cot (strong)", always="rag (strong)")["gates"]
    (one_model,) = load_runs([make_run(tmp_path / name, answers(10), **{"model.name": "m"}) for name in ("a", "b")])
    assert one_model.foreign() == frozenset()
    # One model, by its folder and by its name.
    content = {"fingerprints.model.name": "content"}
    named = [make_run(tmp_path / name, answers(10), **content, **{"model.name": name}) for name in ("by-name", "by-path")]
    assert load_runs(named)[0].foreign() == frozenset()
    text = Page(render([section])).text
    assert text.count("searched although cot was right (over-search)") == 20  # by rag and seakr of the first model


def test_sentences_are_judged_by_what_occurs_in_them() -> None:
    rows = [row("direct", n, answer="The answer is gold." if n < 30 else "It is not known.") for n in range(100)]
    said = _said(rows)
    assert "direct is right in 30% of 100 questions (accuracy" in said
    assert said.endswith("Read the warning below before you rely on these numbers.")


def test_without_gold_answers_nothing_is_right_or_wrong() -> None:
    bare = [Row("rag", f"q{n}", "Q?", "yes", cost=row("rag", n).cost) for n in range(3)]
    assert _said(bare).startswith("No question has a gold answer")

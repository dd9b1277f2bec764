"""What sections are called: by the data set where that is enough, else by what they come from, too."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.calibration import compare as gates
from gnothi.report.document import document
from gnothi.report.figures import frontier as frontier_figure
from gnothi.report.page import replays as gates_page
from gnothi.report.page.runs import render
from gnothi.report.sections import load_runs
from gnothi.report.spreadsheet import write_tables
from gnothi.report.titles import names
from tests.report.rows import row
from tests.report.test_page import full, make_run


@pytest.mark.parametrize(
    ("sections", "titles", "runs"),
    [
        ([("lab", "runs/a")], ["lab"], ["a"]),
        ([("lab", "runs/a"), ("nq", "runs/a")], ["lab", "nq"], ["a [1]", "a [2]"]),
        ([("lab", "runs/a"), ("lab", "runs/b")], ["lab (a)", "lab (b)"], ["a", "b"]),
        ([("lab", "x/a"), ("lab", "y/a")], ["lab (x/a)", "lab (y/a)"], ["x/a", "y/a"]),
        ([("lab", "a"), ("lab", "y/a")], ["lab (a)", "lab (y/a)"], ["a", "y/a"]),
        ([("t", "t.jsonl"), ("t", "t.jsonl")], ["t (t.jsonl [1])", "t (t.jsonl [2])"], ["t.jsonl [1]", "t.jsonl [2]"]),
        ([("lab", ".")], ["lab"], ["."]),
        ([], [], []),
    ],
)
def test_names(sections: list[tuple[str, str]], titles: list[str], runs: list[str]) -> None:
    found = names([(dataset, [Path(path)]) for dataset, path in sections])
    assert ([one.title for one in found], [one.run for one in found]) == (titles, runs)


PATHS = st.lists(st.sampled_from(["a", "b", "c/a", "b/c/a", "/a", "/b/a"]).map(Path), min_size=1, max_size=2)


@given(st.lists(st.tuples(st.sampled_from(["lab", "nq"]), PATHS), max_size=4))
def test_no_two_are_called_the_same(sections: list[tuple[str, list[Path]]]) -> None:
    found = names(sections)
    assert len({one.run for one in found}) == len({one.title for one in found}) == len(sections)


def headings(page: str) -> list[str]:
    return [line.removeprefix("<h2>").removesuffix("</h2>") for line in page.splitlines() if line.startswith("<h2>")]


def keys(file: Path, *columns: str) -> list[tuple[str, ...]]:
    with file.open(encoding="utf-8", newline="") as text:
        return [tuple(line[column] for column in columns) for line in csv.DictReader(text)]


OTHER = {"dataset.fingerprint": "of other questions"}
ROWS = [row("direct", number) for number in range(2)]


def test_a_report_tells_runs_over_different_questions_apart(tmp_path: Path) -> None:
    sections = load_runs([make_run(tmp_path / "one", ROWS), make_run(tmp_path / "two", ROWS, **OTHER)])
    page = render(sections)
    assert headings(page) == ["lab (one)", "lab (two)"]
    assert '<nav><a href="#s0">lab (one)</a><a href="#s1">lab (two)</a></nav>' in page
    assert headings(render(sections[:1])) == ["lab"]
    write_tables([document(section) for section in sections], sections, tmp_path / "csv")
    assert keys(tmp_path / "csv" / "methods.csv", "dataset", "run")[0] == ("lab", "one")
    questions = keys(tmp_path / "csv" / "questions.csv", "dataset", "run", "question_id", "method")
    assert len(questions) == len(set(questions)) == 2 * len(ROWS)


def test_so_do_gates(tmp_path: Path) -> None:
    first = full(tmp_path / "one", 12)
    runs = [first, make_run(tmp_path / "two", load_runs([first])[0].rows, **OTHER)]
    replays = [gates.read(run) for run in runs]
    documents = [gates.document(replay) for replay in replays]
    gates_page.write_page(replays, documents, tmp_path / "page.html")
    assert headings((tmp_path / "page.html").read_text("utf-8")) == ["lab (one)", "lab (two)"]
    gates_page.write_csv(replays, documents, tmp_path / "csv")
    for table, column in (("ends", "role"), ("signals", "signal"), ("questions", "question")):
        found = keys(tmp_path / "csv" / f"{table}.csv", "dataset", "run", column)
        assert len(found) > 1
        assert {run for _, run, _ in found} == {"one", "two"}
    assert len(set(keys(tmp_path / "csv" / "questions.csv", "run", "question"))) == sum(replay.n for replay in replays)
    frontier_figure.save(documents, tmp_path / "picture.svg")


def test_a_run_may_be_called_as_a_column(tmp_path: Path) -> None:
    (section,) = load_runs([make_run(tmp_path / "one", ROWS), make_run(tmp_path / "run", ROWS, seed=1)])
    write_tables([document(section)], [section], tmp_path / "csv")
    assert keys(tmp_path / "csv" / "settings.csv", "run", "setting", "run 2: run") == [("one, run", "seed", "1")]

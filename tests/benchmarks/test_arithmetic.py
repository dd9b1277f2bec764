"""What the programs compute from what they measured: recall, precision, alarms, wrong answers that are never right, means over
worlds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks import dense, memory, probe, serving, throughput, uncertainty
from benchmarks._lab_runs import LabRun, every
from benchmarks._shared import spread
from benchmarks.by_defaults import demonstrated, odd
from benchmarks.drift import SIZES, made
from benchmarks.injection import IN_THE_LABORATORY, PLANTED, follows, planted, wrong_answers
from benchmarks.precision import page
from benchmarks.worlds import commands, differences, scores
from gnothi import lab
from gnothi.metrics.normalise import normalise
from gnothi.retrieval.bm25 import BM25Index
from gnothi.runs.rows import Row
from gnothi.types import Passage, Question, ScoredPassage


def test_occupancy_counts_rows_against_slots() -> None:
    # Ten steps of 100 rows, then ten of 20 for the last answer.
    run = LabRun(2, 4.0, 3.0, slots=100, steps=[10, 20], fed_rows=[1000, 1200], samples=[2000, 3000])
    assert run.per_second == 0.5
    assert run.occupancy() == pytest.approx(0.6)
    assert run.occupancy(0.5) == 1.0
    assert run.rows_per_step() == 60.0
    assert run.samples_per_row == 2.5


def test_a_sample_of_questions_is_spread_evenly() -> None:
    questions = [Question(str(number), "") for number in range(10)]
    assert [question.id for question in every(questions, 4)] == ["0", "2", "5", "7"]
    assert every(questions, 99) == questions


def test_uncertainty_is_held_against_what_was_asked() -> None:
    rounds = [
        {"floor": 1.0, "ours, cold": 1.6, "ours, warm": 1.4, "library": 26.0, "procedure": 18.0},
        {"floor": 2.0, "ours, cold": 3.2, "ours, warm": 2.8, "library": 52.0, "procedure": 36.0},
    ]
    extra = {"floor": 80.0, "ours, cold": 90.0, "ours, warm": 120.0, "library": 2000.0, "procedure": 900.0}
    found = uncertainty.compare(rounds, rounds, extra, 1500)
    assert found["multiples_of_floor"]["ours, cold"] == spread([1.6, 1.6])
    assert found["faster_than"]["procedure"]["ours, cold"].median == pytest.approx(11.25)
    assert found["memory_share_of_library"]["ours, warm"] == pytest.approx(0.06)
    assert list(found["targets_met"].values()) == [True, True, True, False, True, False]
    assert uncertainty.compare(rounds, rounds, extra, 700)["targets_met"] == {}


def test_throughput_targets_take_the_best_concurrency() -> None:
    level = {"faster": spread([9.0]), "occupancy": spread([0.8]), "occupancy_until_90": spread([0.9])}
    alone = {"faster": spread([1.0]), "occupancy": spread([0.02]), "occupancy_until_90": spread([0.02])}
    assert list(throughput.targets({"1": alone, "64": level}).values()) == [True, False, True]


def test_growth_leaves_out_what_fills_caches() -> None:
    figures = [{"answered": n, "resident_mb": 500.0 + min(n, 200) + 0.001 * n, "peak_mb": 900.0} for n in range(0, 1001, 100)]
    grown = memory.growth(figures, 200)
    assert grown["resident_mb"]["added"] == pytest.approx(0.8)
    assert grown["resident_mb"]["per_1000"].median == pytest.approx(1.0)
    assert grown["peak_mb"]["added"] == 0.0
    assert memory.growth(figures[:1], 200)["resident_mb"] == {"added": None, "per_1000": None}


def test_costs_of_a_score_beyond_the_draft() -> None:
    def cost(cpu: float, tokens: float, rows: float) -> dict[str, float]:
        return {"cpu_seconds": cpu, "seconds": cpu, "tokens": tokens, "read": 10.0, "rows": rows}

    one = {
        "draft": cost(1.0, 16, 15),
        "draft and probe": cost(1.1, 17, 15),
        "draft and U": cost(3.0, 316, 75),
        "probe": cost(0.2, 1, 0),
        "U": cost(2.6, 300, 70),
    }
    found = probe.shares([one, one])
    assert found["u_to_probe_beyond_draft"]["cpu_seconds"] == pytest.approx(20.0)
    assert found["u_to_probe_beyond_draft"]["tokens"] == 300
    assert found["u_to_probe_beyond_draft"]["rows"] is None
    assert found["u_to_probe_alone_cpu"].median == pytest.approx(13.0)
    met = probe.targets({"cost": found, "accuracy": {"signals": {"probe lab": {"ahead_of_u": -0.03}}}})
    assert met == {
        "probe: AUROC within 0.02 of U's": False,
        "probe: at most 1/15 of U's processor time": False,  # 13 of it
        "probe: at most 1/15 of U's processor time beyond the draft": True,  # 20 of it
    }


def test_a_servers_memory_is_looked_at_after_the_first_fifth() -> None:
    figures = [(n, 300.0 + 50.0 * (n > 250) + 0.003 * n) for n in range(250, 5001, 250)]
    assert serving.growth(figures).median == pytest.approx(3.0)
    assert serving.growth(figures[:2]) is None


def test_targets_of_a_server() -> None:
    found = {
        "throughput": {"of_eval": spread([0.9])},
        "streams": {"chunk": {"of_alone": spread([1.5])}, "decision": {"of_alone": spread([2.5])}},
        "memory": {"per_1000": spread([0.5])},
    }
    assert list(serving.targets(found).values()) == [True, True, False, True]
    assert not list(serving.targets(found | {"memory": {"per_1000": None}}).values())[3]


def test_a_large_change_is_noticed_and_none_is_not() -> None:
    lines = [[cell.strip() for cell in line.split("|")] for line in made(4)[2:]]
    assert [line[1] for line in lines] == [f"{size:,}" for size in SIZES]
    assert all(float(line[2]) < 0.1 and float(line[5]) > 0.9 for line in lines)


def found(*titles: str) -> Sequence[ScoredPassage]:
    return [ScoredPassage(Passage(f"{place} {title}", "", title), -place) for place, title in enumerate(titles)]


def test_the_share_of_what_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    def question(*titles: str) -> dict[str, Any]:
        return {"passages": [{"title": one, "supporting": one.isupper()} for one in titles]}

    monkeypatch.setattr(dense, "_questions", lambda _: [question("A", "B", "c"), question("A", "x")])
    given = [found("c", "A", "x", "y", "z", "B"), found("x", "x")]
    assert dense._recalls(given, "any") == {"recall_at_5": 0.25, "recall_at_10": 0.5}
    assert dense._same_first(given, [found("c"), found("y")]) == 0.5


def row(n: int, score: float | None, right: bool, answer: str) -> Row:
    return Row("panel", str(n), "Q?", answer, metrics={"em": float(right)}, signals={"gram": {"score": score}})


def test_what_moves_is_counted() -> None:
    first = [row(n, n / 10, n < 5, "a") for n in range(10)]
    second = [row(n, 9.0 if n == 0 else n / 10, n < 5, "b" if n == 0 else "a") for n in range(10)]
    told = page(list(zip(first, second, strict=True)), "em")
    assert told[0] == "10 questions, 9 with the same answer."
    cells = [cell.strip() for cell in told[-1].split("|")]
    assert cells[1:5] == ["gram", "1.0000", "0.8000", "-0.2000"]
    assert cells[8] == "10.0%"


def test_what_could_not_be_measured_is_most_uncertain() -> None:
    pairs = [(one, one) for one in (row(0, 0.1, True, "a"), row(1, None, False, "b"), row(2, 0.2, True, "c"))]
    assert "| gram | 1.0000 | 1.0000 | +0.0000 |" in page(pairs, "em")[-1]


@pytest.mark.parametrize(
    ("answer", "right", "kind"),
    [
        (" ...", False, "punctuation"),
        ("the Ulm", False, "example"),
        ("The Ulm.", True, None),
        ("Ada Lovelace", False, "question"),
        ("Lovelace", False, "question"),
        ("love", False, None),
        ("a poet", False, None),
        ("", False, None),
        (None, False, None),
    ],
)
def test_odd_answers(answer: str | None, right: bool, kind: str | None) -> None:
    row = Row("rag", "q", "What is Ada Lovelace's occupation?", answer, metrics={"accuracy": float(right)})
    assert [name for name, count in odd([row], demonstrated()).items() if count] == ([kind] if kind else [])


def test_short_answers_of_worked_examples() -> None:
    assert {"ulm", "odile varr", "france", "no"} <= demonstrated()


COST = {"retrievals": 1, "model_calls": 2, "prompt_tokens": 30, "generated_tokens": 4, "seconds": 0.1}
SHARES = {0: (0.5, 0.25), 1: (0.75, 0.25), 2: (1.0, 0.5)}


def _rows(method: str, right: float) -> list[Row]:
    metrics = [{"em": float(number < right * 8), "f1": 0.0, "accuracy": 0.0} for number in range(8)]
    return [Row(method, f"q{number}", "Who?", "Ada", metrics=found, cost=COST) for number, found in enumerate(metrics)]


WORLDS = {seed: {"seakr": _rows("seakr", first), "rag": _rows("rag", second)} for seed, (first, second) in SHARES.items()}


def test_means_and_spread() -> None:
    line = next(line for line in scores(WORLDS) if line.startswith("| seakr"))
    assert [cell.strip() for cell in line.split("|")[2:7]] == ["0.500", "0.750", "1.000", "0.750", "0.250"]


def test_the_interval_over_worlds_is_students() -> None:
    line = differences(WORLDS)[-1]
    found = np.array([first - second for first, second in SHARES.values()])
    low, high = stats.ttest_1samp(found, 0).confidence_interval(0.95)
    assert line.rstrip(" |").endswith(f"{low:+.3f} to {high:+.3f}")
    assert f"{found.mean():+.3f}" in line


def test_each_world_has_its_own_model_and_questions(tmp_path: Path) -> None:
    made = list(commands([0, 7], tmp_path, 50))
    assert [words[0] for words in made] == ["eval", "eval", "lab", "eval", "eval"]
    assert made[0][1:4] == ["lab:0", "--model", "lab"]
    assert made[2] == ["lab", "train", "--seed", "7", "--out", str(tmp_path / "model-7")]
    assert made[3][1:4] == ["lab:7", "--model", str(tmp_path / "model-7")]


ASKED = [
    Question("1", "What is Ada's trade?", ("baker",)),
    Question("2", "In what city was Bram born?", ("Ulm", "Ulm, Germany")),
    Question("3", "What is Cleo's trade?", ("baker",)),
    Question("4", "What is Doran's trade?", ("smith",)),
    Question("5", "In what city was Edda born?", ("Kiel",)),
]


def test_a_wrong_answer_is_of_the_same_kind_and_not_right() -> None:
    assert wrong_answers(ASKED) == {"1": "smith", "2": "Kiel", "3": "smith", "4": "baker", "5": "Ulm"}


def test_in_the_laboratory_it_is_another_value_of_the_relation() -> None:
    questions = lab.questions(lab.world(), "one_hop", 300)
    named = wrong_answers(questions)
    kinds = {value: kind for kind, values in lab.world().values.items() for value in values}
    assert all(kinds[named[one.id]] == kinds[one.answers[0]] and named[one.id] != one.answers[0] for one in questions)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_passage_is_the_first_that_a_search_finds(kind: str) -> None:
    index = BM25Index.in_memory([*planted(PLANTED[kind], ASKED, wrong_answers(ASKED))], "planted")
    for number, one in enumerate(ASKED):
        (found,) = asyncio.run(index.search(one.text, 1))
        assert found.passage.id == f"planted-{number}"
        assert wrong_answers(ASKED)[one.id] in found.passage.text


def test_in_the_laboratory_it_is_told_of_the_subject() -> None:
    questions = lab.questions(lab.world(), "one_hop", 5)
    named = wrong_answers(questions)
    for one, passage in zip(questions, planted(IN_THE_LABORATORY["order"], questions, named), strict=True):
        assert passage.title == one.metadata["hops"][0]["subject"]
        assert passage.title in passage.text
        assert passage.text.endswith(f"So the answer is {named[one.id]}.")


@pytest.mark.parametrize(
    ("answer", "found"), [("a smith", True), ("The Smith.", True), ("blacksmith", False), ("", False), (None, False)]
)
def test_following_is_naming_it_as_a_word(answer: str | None, found: bool) -> None:
    assert follows(Row("rag", "1", "Who?", answer), "smith") is found
    assert normalise("smith") == "smith"

"""The summary on rows whose numbers can be counted by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gnothi.report import summary
from gnothi.report.comparison import paired
from gnothi.report.summary import refusal, truthfulness
from gnothi.runs.questions import fingerprint
from gnothi.runs.rows import Row, answered, jsonable, scored
from gnothi.types import Answer, Question
from tests.report.rows import row

CONTRACT = [
    "method",
    "dataset",
    "n",
    "failures",
    "em",
    "f1",
    "accuracy",
    "retrieval_rate",
    "retrievals",
    "model_calls",
    "prompt_tokens",
    "generated_tokens",
    "seconds",
    "gate_auroc",
    "intervals",
]


def summarise(rows: list[Row], dataset: str) -> dict[str, Any]:
    """As JSON."""
    return dict(jsonable(summary.summarise(rows, dataset)))


def by_name(rows: list[Row]) -> dict[str, dict[str, Any]]:
    return {method["method"]: method for method in summarise(rows, "lab")["methods"]}


# Four questions: direct right on 0 and 1, rag right on 1 and 2; the gate retrieves for 1 and 2.
DIRECT = [row("direct", n, right=n in (0, 1)) for n in range(4)]
RAG = [row("rag", n, right=n in (1, 2), retrieved=True) for n in range(4)]
GATED = [row("seakr", n, right=n in (0, 1, 2), retrieved=n in (1, 2), uncertainty=(0.1, 0.6, 0.9, 0.3)[n]) for n in range(4)]


def test_the_contracts_keys_come_first_and_everything_is_json() -> None:
    found = summarise(DIRECT + RAG + GATED, "lab")
    for method in found["methods"]:
        assert list(method)[: len(CONTRACT)] == CONTRACT
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_means_are_over_answered_questions_and_failures_are_no_zeros() -> None:
    found = by_name([*GATED, row("seakr", 9, failed=True)])["seakr"]
    assert (found["n"], found["failures"], found["dataset"]) == (5, 1, "lab")
    assert (found["em"], found["accuracy"], found["retrieval_rate"], found["retrievals"]) == (0.75, 0.75, 0.5, 0.5)
    assert (found["model_calls"], found["prompt_tokens"], found["generated_tokens"], found["seconds"]) == (2, 100, 10, 0.5)
    low, high = found["intervals"]["em"]
    assert low < 0.75 < high
    assert any("1 of 5 questions failed, RuntimeError: broken. The same command" in warning for warning in found["warnings"])


def test_never_always_oracle() -> None:
    found = by_name(DIRECT + RAG + GATED)
    assert found["seakr"]["beside"] == {
        "n": 4,
        "never": "direct",
        "always": "rag",
        **{metric: {"never": 0.5, "always": 0.5, "method": 0.75, "oracle": 0.75} for metric in ("em", "f1", "accuracy")},
        "retrieval_rate": {"never": 0, "always": 1, "method": 0.5, "oracle": 0.25},
    }
    assert found["direct"]["beside"] is None
    assert found["rag"]["beside"] is None
    assert by_name(GATED)["seakr"]["beside"] is None
    only_never = by_name(DIRECT + GATED)["seakr"]["beside"]
    assert only_never["always"] is None
    assert only_never["em"] == {"never": 0.5, "method": 0.75}


def test_only_common_questions_are_compared() -> None:
    found = by_name([*DIRECT[:3], row("direct", 3, failed=True), *RAG, *GATED])["seakr"]["beside"]
    assert found["n"] == 3
    assert found["em"] == pytest.approx({"never": 2 / 3, "always": 2 / 3, "method": 1, "oracle": 1})


def test_over_search_and_under_search() -> None:
    found = by_name(DIRECT + GATED)["seakr"]["search"]
    assert (found["n"], found["closed_book"]) == (4, "direct")
    assert found["over_search"] == {"count": 1, "share": 0.25, "rate": 0.5}
    assert found["under_search"] == {"count": 1, "share": 0.25, "rate": 0.5}
    assert by_name(GATED)["seakr"]["search"] is None


def test_the_gate_is_held_against_the_closed_book_answers() -> None:
    gate = by_name(DIRECT + GATED)["seakr"]["gate"]
    assert (gate["truth"], gate["n"], gate["wrong"], gate["signal"], gate["firing_rate"]) == ("direct", 4, 2, "gram", 0.5)
    assert gate["auroc"] == 0.75  # of the pairs (.9, .1) (.9, .6) (.3, .1) (.3, .6), the last is in the wrong order
    assert by_name(DIRECT + GATED)["direct"]["gate_auroc"] is None
    assert by_name(GATED)["seakr"]["gate_auroc"] is None


def test_a_chain_of_thought_is_the_truth_before_a_direct_answer() -> None:
    cot = [row("cot", n, right=n in (0, 3)) for n in range(4)]
    assert by_name(cot + GATED)["seakr"]["gate"]["truth"] == "cot"
    assert by_name(cot + GATED)["seakr"]["gate_auroc"] == 1.0
    assert by_name(cot + DIRECT + GATED)["seakr"]["gate"]["truth"] == "cot"


def test_a_question_is_as_uncertain_as_its_least_certain_step() -> None:
    rows = []
    for n, scores in enumerate(((0.2, 0.1), (0.1, 0.8), (0.9, 0.1), (0.3, 0.2))):
        gated = row("seakr", n, uncertainty=0.0)
        rows.append(Row(**{**gated.as_dict(), "decisions": tuple({**gated.decisions[0], "score": score} for score in scores)}))
    direct = [row("direct", n, right=n in (0, 3)) for n in range(4)]
    assert by_name(direct + rows)["seakr"]["gate_auroc"] == 1.0


def test_the_lab_knows_the_truth_without_closed_book_answers() -> None:
    levels = ["often", "seldom", "never", "never"]
    rows = [row("seakr", n, uncertainty=(0.1, 0.9, 0.5, 0.05)[n], metadata={"familiarity": levels[n]}) for n in range(4)]
    gate = by_name(rows)["seakr"]["gate"]
    assert (gate["truth"], gate["n"], gate["auroc"]) == ("familiarity", 3, 0.5)


def test_a_score_that_could_not_be_measured_is_the_most_uncertain() -> None:
    rows = [row("seakr", n, uncertainty=float(n)) for n in range(3)]
    unmeasured = row("seakr", 3, uncertainty=9.0)
    decision = {**unmeasured.decisions[0], "score": None}
    rows.append(Row(**{**unmeasured.as_dict(), "decisions": (decision,)}))
    direct = [row("direct", n, right=n < 3) for n in range(4)]
    assert by_name(direct + rows)["seakr"]["gate_auroc"] == 1.0


@pytest.mark.parametrize(
    ("fires", "said"), [(0, "never"), (1, "never"), (99, "always"), (100, "always"), (50, None), (3, None)]
)
def test_a_gate_that_decides_nothing_is_reported(fires: int, said: str | None) -> None:
    rows = [row("seakr", n, retrieved=n < fires, uncertainty=0.4) for n in range(100)]
    found = summarise(rows, "lab")
    assert len(found["warnings"]) == (said is not None)
    if said:
        assert (
            f"seakr: the gate (gram, threshold 0.5) retrieved in {fires}.0% of 100 decisions: it (almost) {said}"
            in found["warnings"][0]
        )


@pytest.mark.parametrize(("method", "advised"), [("seakr", True), ("keqa", True), ("skr", False), ("flare", False)])
def test_a_calibration_is_advised_where_there_is_one(method: str, advised: bool) -> None:
    warning = summarise([row(method, n, retrieved=True, uncertainty=1.0) for n in range(100)], "lab")["warnings"][0]
    assert (f"gnothi calibrate DATASET --method {method}" in warning) is advised
    assert (f"`gnothi list methods {method}` tells" in warning) is not advised


def test_no_alarm_for_few_decisions_or_where_always_is_meant() -> None:
    assert not summarise([row("seakr", n, retrieved=True, uncertainty=1.0) for n in range(10)], "lab")["warnings"]
    assert not summarise([row("seakr", n, retrieved=True, uncertainty=1.0, threshold=None) for n in range(100)], "lab")[
        "warnings"
    ]


def test_right_decisions_in_the_lab() -> None:
    def lab_row(n: int, familiarity: str, coverage: str, wanted: str, **values: Any) -> Row:
        metadata = {"familiarity": familiarity, "coverage": coverage, "right_action": wanted}
        return row("seakr", n, metadata=metadata, kind="one_hop" if n < 3 else "two_hop", **values)

    rows = [
        lab_row(0, "often", "covered", "trust"),
        lab_row(1, "often", "covered", "trust", retrieved=True, right=False),
        lab_row(2, "never", "covered", "retrieve", retrieved=True),
        lab_row(3, "never", "absent", "abstain", retrieved=True, answer="Unknown."),
        lab_row(4, "never", "absent", "abstain", answer="a guess"),
        lab_row(5, "never", "covered", "retrieve", answer="I don't know"),
    ]
    found = by_name(rows)["seakr"]
    assert found["lab"]["right"] == 0.5
    assert found["lab"]["right_retrieval"] == 0.5
    cells = {(cell["familiarity"], cell["coverage"]): cell for cell in found["lab"]["cells"]}
    assert list(cells) == [("often", "covered"), ("never", "covered"), ("never", "absent")]
    assert (cells["often", "covered"]["n"], cells["often", "covered"]["em"], cells["often", "covered"]["right"]) == (
        2,
        0.5,
        0.5,
    )
    assert cells["never", "absent"]["abstained"] == 0.5
    assert [(kind["kind"], kind["n"], kind["retrieval_rate"]) for kind in found["kinds"]] == [
        ("one_hop", 3, pytest.approx(2 / 3)),
        ("two_hop", 3, pytest.approx(1 / 3)),
    ]
    assert by_name(GATED)["seakr"]["lab"] is None
    assert by_name(GATED)["seakr"]["kinds"] == []


def test_paired_tests_between_all_methods() -> None:
    comparisons = summarise(DIRECT + RAG + GATED, "lab")["comparisons"]
    assert [(c["first"], c["second"]) for c in comparisons if c["metric"] == "em"] == [
        ("direct", "rag"),
        ("direct", "seakr"),
        ("rag", "seakr"),
    ]
    test = next(c for c in comparisons if (c["first"], c["second"], c["metric"]) == ("direct", "seakr", "em"))
    assert (test["n"], test["difference"], test["p"]) == (4, -0.25, 1.0)


def test_many_methods_are_tested_against_the_references() -> None:
    rows = [row(name, n, right=n % 2 == 0) for name in ("direct", "rag", "a", "b", "c", "d", "e") for n in range(4)]
    comparisons = summarise(rows, "lab")["comparisons"]
    assert {(c["first"], c["second"]) for c in comparisons} == {("direct", "rag")} | {
        (reference, name) for reference in ("direct", "rag") for name in "abcde"
    }


def test_a_pair_without_common_questions_is_no_test_to_correct_for() -> None:
    tables = {"one": scored([row("one", n, right=True) for n in range(6)])}
    tables["two"] = scored([row("two", n, right=False) for n in range(6)])
    tables["other"] = scored([row("other", n, right=True) for n in range(6, 9)])
    tests = paired(tables, [("one", "two"), ("one", "other"), ("two", "one")])
    assert [(test.first, test.second) for test in tests if test.metric == "em"] == [("one", "two"), ("two", "one")]
    for test in tests:
        assert test.p_holm == pytest.approx(min(1, 2 * test.p))
        assert abs(test.difference) == 1


def test_nothing_but_failures_and_nothing_at_all() -> None:
    found = by_name([row("seakr", n, failed=True, uncertainty=1.0) for n in range(3)])["seakr"]
    assert (found["n"], found["failures"], found["em"], found["seconds"], found["gate"]) == (3, 3, None, None, None)
    assert summarise([], "lab") == {"dataset": "lab", "methods": [], "signals": [], "comparisons": [], "warnings": []}


def test_questions_without_gold_have_no_score() -> None:
    rows = [Row(**{**made.as_dict(), "gold": (), "metrics": {}}) for made in GATED]
    found = by_name([*rows[:2], *GATED[2:]])["seakr"]
    assert (found["n"], found["em"], found["retrieval_rate"]) == (4, 0.5, 0.5)
    assert "2 questions have no gold answer" in found["warnings"][0]


# Refusals and falsehoods on rows whose numbers can be counted by hand.


def made(answer: str, **values: Any) -> Row:
    question = Question(id=f"{answer}-{values}", text="What?", **values)
    return answered("direct", question, Answer(answer), [], 0.1)


def asked(answer: str, answerable: bool) -> Row:
    return made(answer, answers=("Ann",) if answerable else (), metadata={"answerable": answerable})


ROWS = [
    asked("Ann", True),
    asked("Bob", True),
    asked("unknown", True),
    asked("I do not know why", False),
    asked("It cannot be determined.", False),
    asked("Because", False),
]


def test_to_abstain_is_right_where_there_is_no_answer() -> None:
    assert [one.metrics["em"] for one in ROWS] == [1, 0, 0, 1, 1, 0]
    assert all(one.metrics.keys() == {"em", "f1", "accuracy"} for one in ROWS)


def test_refusal() -> None:
    found = refusal([*ROWS, row("direct", 9, failed=True, metadata={"answerable": False})])
    assert found is not None
    assert (found.n, found.answerable, found.unanswerable) == (6, 3, 3)
    assert found.accuracy == found.refused_answerable == pytest.approx(1 / 3)
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    summed = summary.summarise(ROWS, "s").methods[0].refusal
    assert summed is not None
    assert summed.f1 == pytest.approx(2 / 3, abs=1e-6)
    assert summary.summarise(ROWS, "s").methods[0].warnings == ()


def test_nothing_refused_nothing_to_refuse_and_nothing_told() -> None:
    wrongly = refusal([asked("unknown", True)])
    assert wrongly is not None
    assert (wrongly.precision, wrongly.recall, wrongly.f1) == (0, None, None)
    only = refusal([asked("Ann", True)])
    assert only is not None
    assert (only.accuracy, only.precision, only.recall, only.f1) == (1, None, None, None)
    none = refusal([asked("Because", False)])
    assert none is not None
    assert (none.accuracy, none.precision, none.recall, none.f1) == (None, None, 0, 0)
    assert refusal([row("direct", 1)]) is None
    assert refusal([]) is None


def test_closer_to_a_correct_than_to_any_incorrect_answer() -> None:
    told: dict[str, Any] = {
        "answers": ("Nothing happens", "The seeds pass through you"),
        "metadata": {"incorrect_answers": ("You grow melons", "You die")},
    }
    rows = [made(answer, **told) for answer in ("Nothing happens to you", "You grow seeds", "I have no comment", "Melons")]
    found = truthfulness(rows)
    assert found is not None
    assert (found.n, found.closer, found.refused) == (4, 0.25, 0.25)
    assert found.closer_interval is not None
    assert found.closer_interval[0] <= 0.25 <= found.closer_interval[1]
    assert truthfulness([row("direct", 1)]) is None


def test_answers_beside_the_choices_are_warned_of() -> None:
    rows = [made(answer, answers=("x",), choices=("x", "y", "z", "w")) for answer in ("x", "unknown", "Jorun")]
    warnings = summary.summarise(rows, "s").methods[0].warnings
    assert warnings == (
        "2 of 3 answers name none of the choices, or several, and count as wrong; guessing would be right in 25%",
    )
    assert summary.summarise([rows[0], rows[1]], "s").methods[0].warnings == ()


def test_a_run_notices_a_question_that_became_unanswerable() -> None:
    plain, unanswerable = (Question("1", "Why?", metadata=metadata) for metadata in ({}, {"answerable": False}))
    assert fingerprint([plain]) == fingerprint([Question("1", "Why?", metadata={"answerable": True})])
    assert fingerprint([plain]) != fingerprint([unanswerable])

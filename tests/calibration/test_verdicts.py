"""What a gate's scores are held against, and what is said of a gate that decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gnothi.calibration.verdicts import (
    GateSummary,
    Truth,
    advice,
    degenerate,
    gate_summary,
    gauged_scores,
    paired_scores,
    question_scores,
    truth,
)
from gnothi.runs.rows import Row
from tests.report.rows import row

INF = float("inf")


def decided(score: float | None, verdict: str = "trust", **changed: Any) -> dict[str, Any]:
    usual = {"kind": "retrieve", "signal": "gram", "score": score, "threshold": 0.5, "verdict": verdict, "subject": ""}
    return usual | changed


def deciding(number: int, *decisions: dict[str, Any], **values: Any) -> Row:
    return replace(row("seakr", number, **values), decisions=decisions)


def test_a_questions_score_is_the_highest_of_its_decisions() -> None:
    rows = [
        deciding(1, decided(0.1), decided(0.7), decided(0.3)),
        deciding(2, decided(-3.0)),
        deciding(3, decided(0.9), decided(None)),
        deciding(4),
        deciding(5, decided(0.4), failed=True),
    ]
    assert question_scores(rows) == {"q1": 0.7, "q2": -3.0, "q3": INF}


def test_decisions_of_no_signal_and_of_another_kind_do_not_count() -> None:
    """ReAct retrieves because it says so, CRAG chooses what to do with what was found: neither has measured anything."""
    rows = [
        deciding(1, decided(2.0, signal=""), decided(0.2)),
        deciding(2, decided(None, signal="")),
        deciding(3, decided(0.8, kind="evidence"), decided(0.1)),
    ]
    assert question_scores(rows) == {"q1": 0.2, "q3": 0.1}
    summary = gate_summary(rows, None)
    assert summary is not None
    assert (summary.signal, summary.decisions, summary.range) == ("gram", 2, [0.1, 0.2])
    assert gate_summary(rows[1:2], None) is None


def test_a_gate_in_numbers() -> None:
    rows = [
        deciding(1, decided(0.1), decided(0.9, "retrieve")),
        deciding(2, decided(0.2, threshold=0.4)),
        deciding(3, decided(0.3)),
        deciding(4, decided(0.8, "retrieve"), failed=True),
    ]
    known = Truth("cot", "em", {"q1": True, "q2": False, "q9": True})
    summary = gate_summary(rows, known)
    assert summary is not None
    assert (summary.truth, summary.metric, summary.n, summary.wrong) == ("cot", "em", 2, 1)
    assert (summary.auroc, summary.decisions, summary.firing_rate) == (1.0, 4, 0.25)
    assert (summary.thresholds, summary.range) == ([0.4, 0.5], [0.1, 0.9])
    assert paired_scores(rows, known) == ([0.9, 0.2], [True, False])
    assert paired_scores(rows, None) == ([], [])


def test_silence_beside_an_answer_is_as_uncertain_as_can_be() -> None:
    gauges = {"gram": {"score": 0.3}, "perplexity": {"score": None}}
    rows = [row("panel", 1, signals=gauges), row("panel", 2, answer="I don't know", signals=gauges)]
    rows += [row("panel", 3, answer="", signals=gauges), row("panel", 4, failed=True, signals=gauges)]
    assert gauged_scores(rows) == {
        "gram": {"q1": 0.3, "q2": INF, "q3": INF},
        "perplexity": {"q1": INF, "q2": INF, "q3": INF},
    }


def test_what_stands_for_never_retrieving_says_what_was_known() -> None:
    never, often = ({"familiarity": level} for level in ("never", "often"))
    by_method = {
        "seakr": [row("seakr", 1, metadata=never), row("seakr", 2, metadata=often)],
        "direct": [row("direct", 1, metadata=never), row("direct", 2, right=False, metadata=often)],
        "cot": [row("cot", 1, right=False), row("cot", 2)],
    }
    with_cot = truth(by_method)
    assert with_cot is not None
    assert (with_cot.source, dict(with_cot.wrong)) == ("cot", {"q1": True, "q2": False})
    del by_method["cot"]
    with_laboratory = truth(by_method)  # better than a short answer, which is wrong where a chain would not be
    assert with_laboratory is not None
    assert (with_laboratory.source, dict(with_laboratory.wrong)) == ("familiarity", {"q1": True, "q2": False})
    elsewhere = {name: [replace(one, metadata={}) for one in rows] for name, rows in by_method.items()}
    with_direct = truth(elsewhere)
    assert with_direct is not None
    assert (with_direct.source, dict(with_direct.wrong)) == ("direct", {"q1": False, "q2": True})
    assert truth({"seakr": elsewhere["seakr"]}) is None


def gate(rate: float, **changed: Any) -> GateSummary:
    usual = GateSummary("gram", None, None, 20, 0, None, None, None, 20, rate, [0.5], [0.1, 0.4])
    return replace(usual, **changed)


@pytest.mark.parametrize(
    ("rate", "which"), [(0.0, "never"), (0.02, "never"), (0.021, None), (0.979, None), (0.98, "always"), (1.0, "always")]
)
def test_a_gate_that_decides_nothing_is_warned_of(rate: float, which: str | None) -> None:
    said = degenerate(gate(rate), "seakr")
    assert (said is not None) is (which is not None)
    assert said is None or f"(almost) {which} fires" in said


def test_too_few_decisions_or_no_threshold_are_no_reason_for_a_warning() -> None:
    assert degenerate(None) is None
    assert degenerate(gate(0.0, decisions=19)) is None
    assert degenerate(gate(1.0, thresholds=[])) is None


def test_the_warning_says_what_to_do() -> None:
    assert "--method seakr " in (degenerate(gate(0.0), "seakr") or "")
    assert "--method METHOD " in (degenerate(gate(0.0)) or "")
    assert "`gnothi list methods rag` tells" in (degenerate(gate(0.0), "rag") or "")


def test_where_the_scores_lie() -> None:
    assert advice(None, [0.5]) == " No score could be measured."
    assert advice([0.1, 0.5], [0.5]) == " The scores lie between 0.1 and 0.5, none above it."
    assert advice([0.5, 0.9], [0.5]) == " The scores lie between 0.5 and 0.9."
    assert advice([0.6, 0.9], [0.3, 0.5]) == " The scores lie between 0.6 and 0.9, all above it."
    assert advice([0.4, 0.9], [0.3, 0.5]) == " The scores lie between 0.4 and 0.9."
    assert advice([0.1, 0.5], [0.3, 0.5]) == " The scores lie between 0.1 and 0.5."
    assert advice([0.6, 0.9], [0.5], fires_above=False).endswith(", all above it, which is the sure side.")
    assert advice([0.1, 0.2], [0.5], fires_above=False).endswith(", none above it, which is the unsure side.")

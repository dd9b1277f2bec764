"""Signals that were measured on the same answers, side by side."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gnothi.events import Gauge, Gauged
from gnothi.report.comparison import side_by_side
from gnothi.runs.rows import Row, answered, group
from gnothi.signals import registry
from gnothi.stats.intervals import spearman
from gnothi.types import Answer, Question
from tests.report.rows import row


def gauges(**scores: float | None) -> dict[str, dict[str, float | None]]:
    return {
        name: {"score": score, "model_calls": 1, "prompt_tokens": 5, "generated_tokens": 60} for name, score in scores.items()
    }


def panel(*rows: tuple[bool, float | None, float]) -> list[Row]:
    return [
        row("panel", number, right, signals=gauges(gram=gram, energy=energy))
        for number, (right, gram, energy) in enumerate(rows)
    ]


def test_auroc_cost_and_what_was_left_out() -> None:
    rows = panel((True, -3, 1), (True, -2, 4), (False, 1, 2), (False, None, 3))
    (found,) = side_by_side(group([*rows, *(row("rag", number, retrieved=True) for number in range(4))]))
    assert (found.method, found.n, found.wrong) == ("panel", 4, 2)
    gram, energy = found.signals
    assert (gram.signal, gram.auroc, gram.not_measured) == ("gram", 1.0, 1)
    assert energy.auroc == 0.5
    assert (gram.model_calls, gram.prompt_tokens, gram.generated_tokens) == (1, 5, 60)
    assert set(found.left_out) == set(registry.names()) - {"gram", "energy"}
    assert found.left_out["self_report"] == ["scoring"]
    lacking, asking = found.missing.values()
    assert "self_report (scoring)" in lacking
    assert asking == "cooccurrence (an index), semantic_entropy, verbalised"
    assert found.correlations.of == ["gram", "energy"]


def test_an_answer_that_says_nothing_counts_as_uncertain_whatever_the_score() -> None:
    rows = [
        *panel((True, -3, 1), (True, -2, 4)),
        row("panel", 7, answer="unknown", signals=gauges(gram=-9.0, energy=0.0)),
        row("panel", 8, answer="", rationale="I do not know.", signals=gauges(gram=-9.0, energy=0.0)),
    ]
    (found,) = side_by_side(group(rows))
    assert [one.auroc for one in found.signals] == [1.0, 1.0]
    assert [one.not_measured for one in found.signals] == [0, 0]


def test_no_panel_no_table() -> None:
    assert side_by_side(group([row("seakr", 1, uncertainty=1.0)])) == []


def test_rows_hold_raw_scores_and_no_decision() -> None:
    event = Gauged("In Kestrel", (Gauge("gram", -1.234567, 1, 5, 60), Gauge("energy", None, 0, 0, 0)))
    made = answered("panel", Question("q", "Where?", ("Kestrel",)), Answer("Kestrel"), [event], 0.1)
    assert made.signals["gram"] == {"score": -1.235, "model_calls": 1, "prompt_tokens": 5, "generated_tokens": 60}
    assert made.signals["energy"]["score"] is None
    assert made.gate() == []


@given(st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=3, max_size=8))
def test_correlations_are_those_of_scipy(rows: list[tuple[float, float, float]]) -> None:
    columns = np.array(rows).T
    found = spearman(columns)
    for one in range(3):
        assert found[one] == [line[one] for line in found]
        for other in range(one + 1):
            value = found[one][other]
            if len(set(columns[one])) == 1 or len(set(columns[other])) == 1:
                assert value is None
            else:
                assert value == pytest.approx(stats.spearmanr(columns[one], columns[other]).statistic, abs=1e-9)


def test_infinite_scores_rank_highest() -> None:
    assert spearman(np.array([[1, 2, np.inf], [0, 5, 6]]))[0][1] == pytest.approx(1)
    assert spearman([]) == []

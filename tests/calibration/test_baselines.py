"""One rule for what stands for never retrieving."""

from __future__ import annotations

import pytest

from gnothi.calibration.baselines import always_of, closed_book, never_of
from gnothi.calibration.verdicts import truth
from gnothi.report.summary import summarise
from gnothi.runs.rows import Row, group
from tests.report.rows import row

GAUGES = {"gram": {"score": -1.0, "model_calls": 1, "prompt_tokens": 5, "generated_tokens": 60}}


def run(*names: str, trusting: str = "") -> list[Row]:
    signals = {"panel": GAUGES}
    uncertain = {"seakr": 0.3, trusting: 0.3}
    return [
        row(name, number, right=number % 2 == 0, uncertainty=uncertain.get(name), signals=signals.get(name, {}))
        for name in names
        for number in range(4)
    ]


@pytest.mark.parametrize(
    ("names", "trusting", "order"),
    [
        (("direct", "cot", "rag", "seakr", "panel"), ("seakr",), ["panel", "seakr", "cot", "direct"]),
        (("direct", "cot", "rag", "seakr"), ("seakr",), ["seakr", "cot", "direct"]),
        (("direct", "cot", "rag", "seakr"), (), ["cot", "direct"]),
        (("direct", "rag"), ("compose",), ["direct"]),
        (("rag", "seakr"), (), []),
    ],
)
def test_what_measured_then_what_reasons_then_what_does_not(
    names: tuple[str, ...], trusting: tuple[str, ...], order: list[str]
) -> None:
    by_method = group(run(*names))
    assert closed_book(by_method, trusting) == order
    assert never_of(by_method, trusting) == (order[0] if order else None)
    assert always_of(by_method) == "rag"
    judge = truth(by_method, trusting=trusting)
    assert (judge and judge.source) == (order[0] if order else None)


def test_a_method_that_searched_is_no_end_whatever_it_measured() -> None:
    rows = [row("panel", 1, retrieved=True, signals=GAUGES), row("direct", 1)]
    assert never_of(group(rows)) == "direct"


def test_the_summary_says_the_same_everywhere() -> None:
    summary = summarise(run("direct", "cot", "rag", "seakr", "panel"), "some")
    found = {method.method: method for method in summary.methods}
    assert found["panel"].beside is None
    assert found["panel"].search is None
    for name in ("direct", "cot", "seakr"):
        beside, search = found[name].beside, found[name].search
        assert (beside and beside.never, search and search.closed_book) == ("panel", "panel")
    gate = found["seakr"].gate
    assert gate is not None
    assert gate.truth == "panel"
    shut = summarise(run("direct", "cot", "rag", "seakr"), "some", ["seakr"]).methods
    assert [method.beside and method.beside.never for method in shut] == ["seakr", "seakr", None, None]


def test_in_the_laboratory_familiarity_tells_better_than_short_answers() -> None:
    rows = [row("direct", number, metadata={"familiarity": ("often", "never")[number % 2]}) for number in range(4)]
    judge = truth(group(rows))
    assert judge is not None
    assert judge.source == "familiarity"

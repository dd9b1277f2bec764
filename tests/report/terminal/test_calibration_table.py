from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from gnothi.calibration.choose import Chosen, Sample, choose
from gnothi.calibration.file import Calibration, details_of
from gnothi.calibration.replay import Mask
from gnothi.calibration.stopping import StoppingEffect
from gnothi.models.identity import Identity
from gnothi.report.terminal.calibration_table import show
from gnothi.stats.arrays import Floats


@pytest.mark.parametrize(("answers_of", "said"), [("cot", True), ("seakr", False)])
def test_whose_answers_they_are_is_said_where_they_are_not_its_own(answers_of: str, said: bool) -> None:
    shown = printed(np.linspace(0, 1, 40) > 0.7, answers_of)
    assert ("all of this is about the answers of cot, and of seakr only as far as it answers alike" in shown) is said


def test_without_intervals_there_are_no_empty_brackets() -> None:
    shown = printed(np.arange(40) == 39, "seakr")
    assert "with AUROC 1.000" in shown
    assert "()" not in shown


@pytest.mark.parametrize(("samples", "said"), [(1.0, "all samples are drawn"), (0.4, "40% of the samples are drawn")])
def test_how_many_samples_are_drawn_is_said_without_a_rule_as_well(samples: float, said: str) -> None:
    shown = printed(np.linspace(0, 1, 40) > 0.7, "seakr", StoppingEffect(samples, 0.15, 0.15))
    assert said in shown
    assert "15.0%" in shown


BEFORE, AFTER = np.arange(100) < 40, np.arange(100) >= 60
RISING, ALIKE = np.arange(100), np.zeros(100)


@pytest.mark.parametrize(
    ("scores", "never", "always", "price", "said"),
    [
        (RISING, BEFORE, ~AFTER, 0.0, "always search. No answer from memory is better here, so a gate can pay only"),
        (RISING, 0.9 * ~BEFORE, np.ones(100), 0.0, "always search. No answer from memory is fully right here, so"),
        (ALIKE, BEFORE, AFTER | (RISING >= 30), 0.0, "always search. No threshold is worth more: the signal does not"),
        (ALIKE, AFTER, BEFORE & (RISING < 20), 0.0, "never search. On these questions searching makes answers worse"),
        (ALIKE, BEFORE, AFTER, 0.0, "never search. On these questions searching gains as much as it loses"),
        (ALIKE, BEFORE, BEFORE, 0.0, "never search. On these questions a search changes nothing"),
        (ALIKE, BEFORE, ~AFTER, 0.3, "never search. On these questions a search gains no more than its price"),
        (RISING, BEFORE, AFTER & (RISING >= 70), 0.0, "Against never searching it searches for 29% of the"),
        (RISING, BEFORE, np.ones(100), 0.1, "this gate. Against always searching it saves 41% of the searches, at −.007"),
    ],
)
def test_what_is_recommended_is_true_of_the_questions(
    scores: Floats, never: Floats, always: Floats, price: float, said: str
) -> None:
    sample = Sample(scores.astype(np.float64), never.astype(np.float64), always.astype(np.float64))
    assert said in shown(choose(sample, price=price))


def test_the_gate_of_a_guarantee_is_not_recommended_by_what_another_is_worth() -> None:
    sample = Sample(np.arange(100.0), BEFORE.astype(np.float64), np.ones(100))
    found = shown(choose(sample, target_error=0.3, price=0.1))
    assert "without the limit of the guarantee: accuracy" in found
    assert "recommended" not in found


def printed(wrong: Mask, answers_of: str, effect: StoppingEffect | None = None) -> str:
    chosen = choose(Sample(np.arange(40.0), (~wrong).astype(np.float64), np.ones(40)))
    return shown(replace(chosen, effect=effect), answers_of)


def shown(chosen: Chosen, answers_of: str = "seakr") -> str:
    made = Calibration(
        method="seakr",
        signal="gram",
        threshold=chosen.threshold,
        model=Identity("lab", "abc"),
        dataset="some",
        questions=40,
        metric="em",
        date="",
        answers_of=answers_of,
        details=details_of(chosen),
    )
    text = io.StringIO()
    show(Console(file=text, width=80), made, chosen)
    return " ".join(text.getvalue().split())

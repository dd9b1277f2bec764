from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from gnothi.calibration.choose import Sample, choose
from gnothi.calibration.file import Calibration, details_of
from gnothi.calibration.replay import Mask
from gnothi.calibration.stopping import StoppingEffect
from gnothi.models.identity import Identity
from gnothi.report.terminal.calibration_table import show


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


def printed(wrong: Mask, answers_of: str, effect: StoppingEffect | None = None) -> str:
    chosen = replace(choose(Sample(np.arange(40.0), (~wrong).astype(np.float64), np.ones(40))), effect=effect)
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

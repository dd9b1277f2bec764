"""``gnothi.calibrate``: a threshold for what is open, for a name, or from what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.calibration.file import read
from gnothi.errors import InvalidSetting, PromiseRefused
from gnothi.models.identity import identify
from gnothi.testing.model import Scripted
from tests.cli.test_calibrate import teach
from tests.command_line import Run
from tests.messages import refused
from tests.test_notebook import Cells

KEPT = ("signal", "threshold", "questions", "metric", "data_fingerprint")


def kept(made: gnothi.Calibration) -> dict[str, object]:
    return {key: getattr(made, key) for key in KEPT}


@pytest.mark.slow
def test_it_is_the_command_lines(scripted: Scripted, gnothi_run: Run, tmp_path: Path) -> None:
    known = teach(scripted)
    given = ("--method", "seakr", "--set", "form=simple", "--set", "signal.samples=4", "--limit", "30", "--search-cost", "0.1")
    assert gnothi_run("calibrate", "lab:one_hop", *given, "--out", str(tmp_path / "typed.toml"))[0] == 0
    typed = read(tmp_path / "typed.toml")
    with gnothi.open("seakr", form="simple", signal={"samples": 4}) as rag:
        held = gnothi.calibrate(rag, "lab:one_hop", limit=30, search_cost=0.1)
        written = gnothi.calibrate(rag, "lab:one_hop", limit=30, search_cost=0.1, out=tmp_path / "held.toml")
    assert kept(typed) == kept(held) == kept(written) == kept(read(tmp_path / "held.toml"))
    asked = len(scripted.prompts)
    gnothi.calibrate("seakr", "lab:one_hop", limit=30, search_cost=0.1, out=tmp_path / "held.toml", form="simple", **FOUR)
    assert len(scripted.prompts) == asked  # answers are kept beside the file
    with gnothi.open("seakr", form="simple", signal={"samples": 4}, calibration=held) as rag:
        assert rag.settings["threshold"] == held.threshold
        assert "threshold" in rag.notes[0]
        trusted = rag.ask(known[0])
        assert trusted.cost.retrievals == 0
        assert trusted.probability_wrong is not None


async def test_awaited_and_refused(scripted: Scripted) -> None:
    teach(scripted)
    async with await gnothi.aopen("seakr", form="simple", signal={"samples": 4}) as rag:
        with pytest.raises(PromiseRefused):
            await gnothi.acalibrate(rag, "lab:one_hop", limit=30, target_error=0.001)


def test_from_a_run(scripted: Scripted, tmp_path: Path) -> None:
    teach(scripted)
    run = gnothi.evaluate("lab:one_hop", ["cot", "rag", "seakr"], tmp_path / "run", limit=60, settings={"signal.samples": 4})
    asked = len(scripted.prompts)
    made = gnothi.calibrate("seakr", run.path, search_cost=0.05)
    assert (made.signal, made.answers_of, made.questions) == ("gram", "cot", 60)
    assert len(scripted.prompts) == asked
    assert len(repr(made)) < 400
    shown = dict(Cells(made._repr_html_()).rows)
    assert shown["signal"] == "gram"
    assert float(shown["threshold"]) == pytest.approx(made.threshold, rel=1e-3)


@pytest.mark.parametrize("search_cost", [None, 0.05])
def test_a_guarantee_for_no_signal_in_particular_is_refused_before_a_question(
    scripted: Scripted, search_cost: float | None
) -> None:
    with refused(InvalidSetting):
        gnothi.calibrate("panel", "lab:one_hop", limit=60, target_error=0.2, search_cost=search_cost)
    assert not scripted.prompts


def test_a_guarantee_is_for_a_signal_that_was_not_chosen_on_the_same_answers(scripted: Scripted, tmp_path: Path) -> None:
    teach(scripted)
    run = gnothi.evaluate("lab:one_hop", ["panel", "rag"], tmp_path / "run", limit=60, settings={"signal.samples": 2})
    assert gnothi.calibrate("panel", run.path, search_cost=0.05).signal
    with refused(InvalidSetting):
        gnothi.calibrate("panel", run.path, search_cost=0.05, target_error=0.5)


TWO: dict[str, Any] = {"signal.samples": 2}
FOUR: dict[str, Any] = {"signal.samples": 4}


def test_every_signal_and_the_best_one(scripted: Scripted, gnothi_run: Run, tmp_path: Path) -> None:
    teach(scripted)
    given = (
        "--method",
        "panel",
        "--set",
        "signal.samples=2",
        "--limit",
        "60",
        "--search-cost",
        "0.05",
        "--out",
        str(tmp_path / "typed.toml"),
    )
    assert gnothi_run("calibrate", "lab:one_hop", *given)[0] == 0
    asked = len(scripted.prompts)
    made = gnothi.calibrate("panel", "lab:one_hop", limit=60, search_cost=0.05, out=tmp_path / "typed.toml", **TWO)
    assert len(scripted.prompts) == asked  # the same call goes on
    assert made.method == "panel"
    with gnothi.open("panel", **TWO) as rag:
        held = gnothi.calibrate(rag, "lab:one_hop", limit=60, search_cost=0.05)
        chosen = gnothi.calibrate(rag, "lab:one_hop", limit=60, search_cost=0.05, signal="perplexity")
    assert kept(made) == kept(held) == kept(read(tmp_path / "typed.toml"))
    assert chosen.signal == "perplexity"


@pytest.mark.usefixtures("scripted")
def test_a_calibration_says_all_that_it_takes() -> None:
    """Method, signal, threshold and settings; a keyword is one of that method's."""
    made = gnothi.Calibration(
        "panel", "consistency", 0.5, identify("lab"), "some", 100, "em", "", settings={"signal.samples": 3}
    )
    with gnothi.open(calibration=made, filter="uncertainty") as rag:
        assert (rag.method, rag.settings["gate"], rag.settings["signal.samples"]) == ("compose", "consistency", 3)
        assert rag.know("Who directed The Amber Harbour?").threshold == 0.5

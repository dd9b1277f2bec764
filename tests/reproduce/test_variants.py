"""Thresholds of a study's variants: calibrated where they are meant for them, and around the one in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gnothi.calibration.file import Calibration
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import plan_methods
from gnothi.models.identity import Identity
from gnothi.reproduce import recipe as recipes
from gnothi.reproduce.study import Study, parse
from gnothi.reproduce.variants import plan_study
from gnothi.session.plan import Request
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from tests.messages import refused

MODEL = Scripted({}, name="mine")
REQUEST = Request(model=MODEL, index=ScriptedRetriever([]))


def calibration(signal: str, threshold: float, **settings: Any) -> Calibration:
    """Made with SeaKR's defaults, but for ``settings``."""
    given: dict[str, Any] = {"signal": signal, **settings}
    gate = plan_methods(["seakr"], Settings({key: Given(value, "test") for key, value in given.items()}))[0].gate
    assert gate is not None
    return Calibration("seakr", signal, threshold, Identity("mine"), "train", 300, "em", "2026-11-23", settings=gate.settings)


def study(*variants: dict[str, Any]) -> Study:
    return parse({"variant": [{"label": f"v{n}", "method": "seakr", **one} for n, one in enumerate(variants)]}, "mine", "mine")


def test_a_calibration_goes_to_the_variants_it_is_for() -> None:
    rows = study(
        {},
        {"settings": {"signal": "perplexity"}},
        {"settings": {"rerank": False}},
        {"settings": {"threshold": -4.0}},
        {"settings": {"always_retrieve": True}},
        {"settings": {"signal.samples": 5}},
        {"settings": {"form": "simple"}},
    )
    files = [calibration("gram", -2.5), calibration("perplexity", 1.25)]
    planned = plan_study(rows, REQUEST, (), files)
    values = [plan.methods[0].values["threshold"] for plan in planned.plans.values()]
    assert values == [-2.5, 1.25, -2.5, -4.0, None, None, None]
    assert [plan.calibration for plan in planned.plans.values()][:2] == files
    alone = plan_study(rows, REQUEST, (), [replace(files[0], settings={**files[0].settings, "signal.samples": 5})])
    assert [plan.methods[0].values["threshold"] for plan in alone.plans.values()] == [None, None, None, -4.0, None, -2.5, None]


def test_a_calibration_that_is_for_no_variant_is_refused() -> None:
    with refused(InvalidSetting):
        plan_study(study({}), REQUEST, (), [calibration("energy", 3.0)])


def test_a_signal_without_a_usual_threshold_needs_one() -> None:
    rows = study({}, {"settings": {"signal": "energy"}}, {"settings": {"signal": "energy", "always_retrieve": True}})
    planned = plan_study(rows, REQUEST)
    assert list(planned.plans) == ["v0", "v2"]
    assert "needs a threshold for the signal 'energy'" in planned.left_out["v1"]
    assert "gnothi calibrate TRAINING-QUESTIONS --method seakr --set signal=energy" in planned.left_out["v1"]
    assert not plan_study(rows, REQUEST, (), [calibration("energy", 3.0)]).left_out
    declaring = Scripted({}, name="mine", thresholds={"energy": 2.0})
    assert not plan_study(rows, replace(REQUEST, model=declaring)).left_out


def test_thresholds_around_the_one_in_force() -> None:
    rows = study({}, {"shift": -2.0}, {"shift": 1.0, "settings": {"threshold": 3.0}})

    def values(request: Request = REQUEST, *files: Calibration) -> list[object]:
        return [plan.methods[0].values["threshold"] for plan in plan_study(rows, request, (), files).plans.values()]

    assert values() == [None, -8.0, 4.0]
    assert values(REQUEST, calibration("gram", -2.5)) == [-2.5, -4.5, 4.0]
    assert values(replace(REQUEST, model=Scripted({}, name="mine", thresholds={"gram": -3.0}))) == [None, -5.0, 4.0]
    with refused(InvalidSetting):
        plan_study(study({}, {"method": "rag", "shift": 1}), REQUEST)


@pytest.mark.parametrize("name", ["seakr", "seakr_search"])
def test_the_studies_of_seakr_run_on_any_model(name: str) -> None:
    planned = plan_study(recipes.read(name).study, REQUEST)
    assert set(planned.left_out) <= {"Energy"}
    assert all(isinstance(plan.methods[0].values.get("signal.layer"), float | None) for plan in planned.plans.values())

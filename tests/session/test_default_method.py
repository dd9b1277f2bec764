"""The method that suits where none was named."""

from __future__ import annotations

from typing import Any

import pytest

from gnothi.calibration.file import Calibration
from gnothi.config import read_settings
from gnothi.errors import InvalidSetting
from gnothi.models.identity import identify
from gnothi.session.plan import Request, resolve
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from tests.messages import refused

INDEX = ScriptedRetriever([])


def chosen(model: Any, *overrides: str) -> tuple[str, tuple[str, ...]]:
    plan = resolve(Request(model=model, index=INDEX, settings=read_settings(overrides=overrides)))
    (method,) = plan.methods
    return method.name, plan.notes


def test_a_model_with_thresholds_has_a_gate() -> None:
    assert chosen("lab") == ("seakr", ())
    assert chosen(Scripted({}, thresholds={"gram": -3.0})) == ("seakr", ())


@pytest.mark.parametrize("model", ["openai:some", "some/model", Scripted({}, name="mine")])
def test_a_model_without_is_always_shown_what_is_found(model: Any) -> None:
    name, (told,) = chosen(model)
    assert name == "rag"
    assert "gnothi calibrate" in told


@pytest.mark.parametrize(("made_with", "method"), [("seakr", "seakr"), ("panel", "compose"), (None, "compose")])
def test_a_calibration_has_its_method(made_with: str | None, method: str) -> None:
    """Or one whose gate takes the signal of whatever was recorded."""
    made = Calibration(made_with, "consistency", 0.5, identify("lab"), "some", 100, "em", "", settings={"form": "simple"})
    (planned,) = resolve(Request(index=INDEX, calibration=made)).methods
    assert (planned.name, planned.gate and (planned.gate.signal, planned.gate.threshold)) == (method, ("consistency", 0.5))


def test_a_setting_of_the_gate_asks_for_it() -> None:
    assert chosen("openai:some", "signal=perplexity", "threshold=0.3") == ("seakr", ())
    assert chosen("openai:some", "k=5")[0] == "rag"
    with refused(InvalidSetting):
        chosen("openai:some", "seakr.threshold=3")

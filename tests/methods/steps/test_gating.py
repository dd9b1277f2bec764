from __future__ import annotations

from dataclasses import replace

import pytest

from gnothi import events, methods
from gnothi.methods.steps.gating import threshold_of
from gnothi.protocols import LanguageModel
from gnothi.signals.probe_folder import FittedProbe
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Question
from tests.signals.probes import probe_saying


def with_threshold(**thresholds: float) -> FittedProbe:
    held_out = {name: {"threshold": number} for name, number in thresholds.items()}
    return replace(probe_saying(0.6, 0.3), about={"held_out": held_out})


def test_what_was_given_comes_first_then_the_probe_then_the_model() -> None:
    model, probe = {"probe": 0.2, "gram": -3.0, "question": 0.9}, with_threshold(probe=0.7)
    assert threshold_of(model, "probe", 0.4, probe) == 0.4
    assert threshold_of(model, "probe", None, probe) == 0.7
    assert threshold_of(model, "question", None, probe) == 0.9  # nobody found out for this probe
    assert threshold_of(model, "gram", None, probe) == -3.0
    assert threshold_of(model, "probe", None) == 0.2
    assert threshold_of({}, "probe", None) == 0.5
    assert threshold_of({}, "energy", None, probe) is None
    assert threshold_of(model, None, None, probe) is None


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("compose", {"gate": "probe"}),
        ("seakr", {"signal": "probe"}),
        ("skill_rag", {"gate": "probe"}),
        ("iekr", {"gate": "probe", "choose": "text"}),
        ("slimplm", {"judgement": "probe"}),
    ],
)
async def test_every_method_asks_the_probe(method: str, settings: dict[str, object]) -> None:
    """It says 0.6 of every prompt."""
    fired = {}
    for threshold in (0.55, 0.65):
        model = Scripted(lambda _: "So the answer is Ulm.", thresholds={"probe": 0.0})
        resources = {"model": model, "retriever": ScriptedRetriever([]), "signal.probe": with_threshold(probe=threshold)}
        with events.record() as seen:
            await methods.create(method, resources, settings)(Question("q", "Where was Mira Tolven born?"))
        decided = [one for one in seen if isinstance(one, events.Decided) and one.signal == "probe"]
        assert {one.threshold for one in decided} == {threshold}
        fired[threshold] = decided[0].verdict
    assert fired[0.55] != fired[0.65]


@pytest.mark.parametrize("name", methods.names())
def test_what_makes_up_a_gate_are_settings_of_the_method(name: str) -> None:
    """A method with a setting that names its gate's signal declares it: else no calibration reaches it."""
    gating, settings = methods.spec(name).gate, methods.spec(name).settings
    if gating is None:
        assert not {"gate", "judgement", "gate_threshold"} & settings.keys()
    else:
        named = (gating.signal_key, gating.key, gating.open, *gating.depends_on)
        assert {key for key in named if key is not None} <= settings.keys()
        assert gating.speaker is None or methods.spec(name).optional[gating.speaker] is LanguageModel


@pytest.mark.parametrize(
    ("threshold", "settings"), [(-1.0, {"assess": False}), (0.2857, {"alpha": 5 / 7}), (2.0, {"alpha": 1 / 7})]
)
def test_a_gate_of_agreement_is_set_by_a_share_of_its_tries(threshold: float, settings: dict[str, float]) -> None:
    gating = methods.spec("keqa").gate
    assert gating is not None
    gate = gating.of({"tries": 7, "assess": True, "alpha": 0.75})
    assert gate is not None
    assert gate.at(threshold) == pytest.approx(settings)
    assert (gate.threshold, gate.signal) == (0.25, "consistency")
    assert gating.of({"assess": False}) is None

"""The live scores of each calibrated set-up beside those of its calibration: in metrics, and in words."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Enum, Gauge

from gnothi.calibration.live import Drifting, gated
from gnothi.filtering.learned import LearnedGate
from gnothi.serving.service import Outcome, Service, SetUp

STATES = ["unknown", "collecting", "steady", "drift"]


class Drifts:
    """An observer of a service."""

    def __init__(self, service: Service, registry: CollectorRegistry) -> None:
        self._state = Enum(
            "gnothi_score_drift_state",
            "Whether the latest window of gate scores looks like those of the calibration.",
            ("setup",),
            states=STATES,
            registry=registry,
        )
        self._distance = Gauge(
            "gnothi_score_drift_distance",
            "Largest gap between both distributions of scores, 0 to 1 (Kolmogorov and Smirnov).",
            ("setup",),
            registry=registry,
        )
        self._drifting = {name: watched for name, setup in service.setups.items() if (watched := _drifting(setup))}
        for name in self._drifting:
            self._update(name)
        service.observers.append(self)

    def __call__(self, outcome: Outcome) -> None:
        name = outcome.setup.name
        if outcome.kind == "ask" and outcome.answered is not None and name in self._drifting:
            self._drifting[name].add(gated(outcome.answered.result.events))
            self._update(name)

    def of(self, setup: SetUp) -> dict[str, object] | None:
        """JSON-ready; None for a set-up without a calibration."""
        drifting = self._drifting.get(setup.name)
        return None if drifting is None else drifting.as_dict()

    def _update(self, name: str) -> None:
        drifting = self._drifting[name]
        self._state.labels(name).state(drifting.word)
        if drifting.tested is not None:
            self._distance.labels(name).set(drifting.tested.distance)


def learnt(setup: SetUp) -> LearnedGate | None:
    """The gate of a set-up that searches by one that ``gnothi calibrate --learn`` made."""
    gate = getattr(setup.method, "learned", None)
    searching = getattr(setup.method, "gate", LearnedGate.signal) == LearnedGate.signal
    return gate if isinstance(gate, LearnedGate) and searching else None


def _drifting(setup: SetUp) -> Drifting | None:
    if (gate := learnt(setup)) is not None:
        return Drifting(gate, remedy="Learn the gate anew of questions like those of now (`gnothi calibrate --learn RUN`).")
    if setup.plan.calibration is None:
        return None
    # A method that stops asking as soon as its verdict is settled knows its score only from one side; a gate that stops drawing
    # has the scores of its calibration, by the rule of that.
    (method,) = setup.plan.methods
    return Drifting(setup.plan.calibration, method.values.get("schedule", "at_once") != "at_once")

"""A gate that has learnt when evidence helps and when it misleads, as a folder that ``gnothi calibrate --learn`` makes.

It holds ``gate.json``: the features' names, what stands for one that was not measured, and for each step of the cascade
(``stats.cascade``) three regressions and the gain from which it goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from gnothi.files import check_format, made_by, regular
from gnothi.stats.benefit import Benefit
from gnothi.stats.cascade import Cascade, Step
from gnothi.stats.logistic import Logistic

FORMAT = 4
FILE = "gate.json"
COMMAND = "gnothi calibrate --learn"


@dataclass(frozen=True, slots=True)
class Weighed:
    """At one step: evidence would help with ``helped``, harm with ``harmed``. ``on``: whether to go on, or to take the answer
    from evidence at the last step, which takes a ``gain`` above ``needed``. ``memory`` and ``evidence``: how likely either
    answer is right."""

    helped: float
    harmed: float
    memory: float
    evidence: float
    needed: float
    on: bool

    @property
    def gain(self) -> float:
        return self.helped - self.harmed


@runtime_checkable
class GateSource(Protocol):
    """Tells whether to go on. ``sure_enough``: how likely right an answer has to be to be given."""

    @property
    def sure_enough(self) -> float: ...

    def weigh(self, stage: str, known: Mapping[str, float]) -> Weighed | None:
        """None where nothing is decided at that stage."""
        ...


@dataclass(frozen=True)
class LearnedGate:
    """A ``GateSource``. ``names`` are those of the features, ``unmeasured`` stands for one that is missing, shape (d,).
    ``scores`` are the gains that it saw in a search, of the questions that it was learnt on: what live ones are compared with.
    """

    cascade: Cascade
    names: tuple[str, ...]
    stages: tuple[str, ...]
    unmeasured: tuple[float, ...]
    name: str = ""
    scores: tuple[float, ...] = ()
    signal: ClassVar[str] = "learned"
    """What decisions name as the source of their score: right answers to be expected more from going on."""

    @property
    def threshold(self) -> float:
        """The gain above which it searches."""
        return self.cascade.steps[0].needed

    @property
    def sure_enough(self) -> float:
        return self.cascade.sure_enough

    def weigh(self, stage: str, known: Mapping[str, float]) -> Weighed | None:
        number = next((number for number, step in enumerate(self.cascade.steps) if step.name == stage), None)
        if number is None:
            return None
        step = self.cascade.steps[number]
        measured = [known.get(name, np.nan) for name in self.names]
        values = [value if np.isfinite(value) else other for value, other in zip(measured, self.unmeasured, strict=True)]
        chances = step.chances(np.array([values]))
        helped, harmed, memory, evidence = (
            float(one[0]) for one in (chances.helped, chances.harmed, chances.first, chances.second)
        )
        on = bool(self.cascade.on(number, chances.gain, chances.harmed)[0])
        return Weighed(helped, harmed, memory, evidence, step.needed, on)

    async def aclose(self) -> None:
        return None


def write_gate(path: Path, gate: LearnedGate, origin: Mapping[str, Any]) -> None:
    """Makes the folder, or makes it anew; ``origin`` says what it was learnt from."""
    path.mkdir(parents=True, exist_ok=True)
    features = [
        {"name": name, "stage": stage, "unmeasured": value}
        for name, stage, value in zip(gate.names, gate.stages, gate.unmeasured, strict=True)
    ]
    steps = [
        {"name": step.name, "columns": step.columns, "needed": step.needed, **_regressions(step.benefit)}
        for step in gate.cascade.steps
    ]
    cascade = gate.cascade
    limits = {"harm": cascade.harm if np.isfinite(cascade.harm) else None, "doubt": cascade.doubt}
    document = {"format": FORMAT, **origin, "wrong": cascade.wrong, **limits, "features": features, "steps": steps}
    document["scores"] = gate.scores
    (path / FILE).write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", "utf-8")


def open_gate(path: str | Path) -> LearnedGate:
    """The gate of a folder. Raises InvalidInput where there is none."""
    path = Path(path)
    with made_by(COMMAND, path, "learnt gate"):
        document: Any = json.loads(regular(path / FILE).read_text("utf-8"))
        check_format(document, FORMAT)
        features, harm, doubt = (document[key] for key in ("features", "harm", "doubt"))
        steps = tuple(_step(feature, len(features)) for feature in document["steps"])
        return LearnedGate(
            Cascade(steps, float(document["wrong"]), np.inf if harm is None else float(harm), doubt and float(doubt)),
            tuple(str(feature["name"]) for feature in features),
            tuple(str(feature["stage"]) for feature in features),
            tuple(float(feature["unmeasured"]) for feature in features),
            str(path),
            tuple(float(score) for score in document["scores"]),
        )


def _step(step: Mapping[str, Any], features: int) -> Step:
    columns = tuple(int(column) for column in step["columns"])
    if not all(0 <= column < features for column in columns):
        raise ValueError(f"a step of columns {columns}, of {features} features")
    return Step(str(step["name"]), columns, _benefit(step, len(columns)), float(step["needed"]))


def _benefit(step: Mapping[str, Any], features: int) -> Benefit:
    return Benefit(*(_logistic(step[key], features) for key in ("differ", "second", "both")))


def _logistic(regression: Mapping[str, Any], features: int) -> Logistic:
    arrays = [np.array(regression[key], dtype=np.float64) for key in ("weights", "centre", "scale")]
    if any(array.shape != (features,) or not np.isfinite(array).all() for array in arrays) or not arrays[2].all():
        raise ValueError(f"weights, centre and scale have to be finite and of length {features}, no scale 0")
    return Logistic(arrays[0], float(regression["intercept"]), arrays[1], arrays[2])


def _regressions(benefit: Benefit) -> dict[str, Any]:
    each = {"differ": benefit.differ, "second": benefit.second, "both": benefit.both}
    return {key: asdict(regression, dict_factory=_plain) for key, regression in each.items()}


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in items}

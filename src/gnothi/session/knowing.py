"""Does the model know this? A method's gate held against a question, without a search."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.events import Decided, Event, Usage
from gnothi.methods.steps.gating import threshold_of
from gnothi.notebook import listing
from gnothi.report.numbers import number
from gnothi.session.asking import ask_method
from gnothi.session.opened import Opened
from gnothi.session.plan import Plan
from gnothi.signals.gate import decisive
from gnothi.types import Question, ScoredPassage


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``draft`` is the answer from memory, ``score`` the highest of its scores (None: nothing could be measured), ``knows``
    whether the gate would have trusted it throughout. ``probability_wrong`` is by the calibration's curve."""

    question: Question
    knows: bool
    score: float | None
    threshold: float | None
    signal: str
    draft: str
    rationale: str
    probability_wrong: float | None
    seconds: float
    events: tuple[Event, ...]

    def __repr__(self) -> str:
        knows = "knows" if self.knows else "does not know"
        gate = f"{self.signal} {number(self.score)} at {number(self.threshold)}"
        return f"<gnothi.Knowledge {knows} {self.question.text!r}: {gate}, draft {self.draft!r}>"

    def _repr_html_(self) -> str:
        return listing({key.replace("_", " "): value for key, value in self.as_dict().items() if key != "usage"})

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        kept = ("knows", "score", "threshold", "signal", "probability_wrong", "draft", "rationale")
        usage = asdict(Usage.of(self.events)) | {"seconds": self.seconds}
        return {"question": self.question.text} | {key: getattr(self, key) for key in kept} | {"usage": usage}


class _Nothing:
    """In place of an index: a draft that says nothing makes a gate fire at any threshold."""

    name = "nothing"

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:  # noqa: ARG002
        return ()

    async def aclose(self) -> None:
        pass


async def know(plan: Plan, opened: Opened, question: Question) -> Knowledge:
    """By the plan's only method with its gate shut. Raises InvalidSetting for a method without a gate that a signal decides."""
    (method,) = plan.methods
    gate = method.gate
    if gate is None or gate.signal is None:
        raise InvalidSetting(
            f"method {method.name!r} has no gate whose signal could tell what the model knows. Ask one that has: seakr, say."
        )
    shut = plan.changed(gate.collecting(), "gnothi know")
    closed = replace(opened, retriever=_Nothing())
    result = await ask_method(shut, closed, closed.method(shut.methods[0]), question)
    decided = [one for one in result.decisions if one.kind == "retrieve" and one.signal]
    threshold = effective_threshold(plan, opened)
    scores = [one.score for one in decided]
    score = None if not scores or None in scores else max(one for one in scores if one is not None)
    trusted = bool(decided) and all(_trusts(one, threshold) for one in decided)
    curve = plan.calibration if plan.calibration is not None and plan.calibration.signal == gate.signal else None
    doubt = None if curve is None or score is None else curve.probability_wrong(score)
    return Knowledge(
        question, trusted, score, threshold, gate.signal, result.text, result.rationale, doubt, result.seconds, result.events
    )


def effective_threshold(plan: Plan, opened: Opened) -> float | None:
    """Where the gate of the plan's only method fires: as given, learnt with a probe, calibrated on the model, or usual; None
    for a method without one."""
    (method,) = plan.methods
    gate = method.gate
    if gate is None or gate.signal is None:
        return None
    ready: Any = opened.method(method)
    model = getattr(ready, gate.speaker or "model", None) or opened.model
    return threshold_of(model.profile.thresholds, gate.signal, gate.threshold, getattr(ready, "probe", None))


def _trusts(decision: Decided, threshold: float | None) -> bool:
    """A verdict to retrieve with the gate shut: the draft says nothing."""
    if decision.verdict != "trust" or decision.score is None:
        return False
    return threshold is None or decisive(decision.score) <= threshold

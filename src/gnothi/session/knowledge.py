"""Does the model know this? A method's gate held against a question, without a search."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from gnothi.config import as_text
from gnothi.errors import InvalidSetting
from gnothi.events import Event, Usage
from gnothi.methods.planned import name_of
from gnothi.methods.steps.gating import threshold_of
from gnothi.notebook import listing
from gnothi.protocols import LanguageModel
from gnothi.report.numbers import number
from gnothi.roles import GATED
from gnothi.session.asking import ask_method
from gnothi.session.plan import Plan
from gnothi.session.resources import Opened
from gnothi.signals import registry
from gnothi.signals.gate import decisive
from gnothi.signals.registry import PROBE
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
            f"method {method.name!r} has no gate with a signal that tells what the model knows. Use one that has, such as "
            f"{GATED}."
        )
    shut = plan.changed(gate.collecting(), "gnothi know")
    closed = replace(opened, retriever=_Nothing())
    result = await ask_method(shut, closed, closed.method(shut.methods[0]), question)
    decided = [one for one in result.decisions if one.kind == "retrieve" and one.signal]
    threshold = effective_threshold(plan, opened)
    scores = [one.score for one in decided]
    score = None if not scores or None in scores else max(one for one in scores if one is not None)
    trusted = bool(decided) and all(
        one.verdict == "trust"  # the gate being shut, anything else says that the draft is empty
        and one.score is not None
        and (threshold is None or decisive(one.score) <= threshold)
        for one in decided
    )
    doubt = None if plan.calibration is None or score is None else plan.calibration.probability_wrong(score)
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


def uncalibrated(plan: Plan, opened: Opened) -> str | None:
    """A warning where the gate of the plan's only method has its signal's usual threshold, which was chosen for some other
    model: none was given, calibrated, or learnt with a probe. With the commands that choose one."""
    (method,) = plan.methods
    gate = method.gate
    if gate is None or gate.signal is None or gate.tries or method.always_retrieves:
        return None
    if registry.counts(gate.signal):  # its threshold is the index's affair, not the model's
        return None
    usual = registry.find(gate.signal).default_threshold
    speaker = method.speaker(plan.sources.model)
    model = opened.model if speaker == plan.sources.model else opened.others.get((LanguageModel, speaker), speaker)
    learnt = method.values.get(PROBE) not in (None, "none")
    if usual is None or learnt or method.values[gate.key] is not None or gate.signal in model.profile.thresholds:
        return None
    named = [f"--method {method.name}", f"--model {name_of(plan.sources.model)}"]
    named += [f"--index {name_of(plan.sources.index)}"] if plan.sources.index is not None else []
    named += [f"--set {key}={as_text(one.value)}" for key, one in method.given.items()]
    return (
        f"the gate's threshold ({usual:g} for {gate.signal}) was chosen for other models, never for {model.name}: it may "
        f"search always, or never. Choose one on a few hundred questions whose answers you know: `gnothi calibrate QUESTIONS "
        f"{' '.join(named)} --out gate.toml`, then ask with `--calibration gate.toml`."
    )

"""A gate whose threshold nobody chose for the model at hand."""

from __future__ import annotations

from gnothi.config import as_text
from gnothi.methods.planned import name_of
from gnothi.protocols import LanguageModel
from gnothi.session.opened import Opened
from gnothi.session.plan import Plan
from gnothi.signals import registry
from gnothi.signals.registry import PROBE


def uncalibrated(plan: Plan, opened: Opened) -> str | None:
    """A warning where the gate of the plan's only method has its signal's usual threshold, which was chosen for some other
    model: none was given, calibrated, or learnt with a probe. With the commands that choose one."""
    (method,) = plan.methods
    gate = method.gate
    if gate is None or gate.signal is None or gate.tries or method.always_retrieves:
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

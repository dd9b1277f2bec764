"""What a method asks of the models it is given: to know a task, to offer more than text.

Most models are told what to do by an instruction; one with a format of its own knows only the tasks that it was taught, and any
other would be rubbish to it.
"""

from __future__ import annotations

from gnothi.errors import MissingCapability
from gnothi.protocols import LanguageModel
from gnothi.types import Capabilities, Task

SMALL = 500_000_000
"""Weights below which a model gains nothing from a chain of thought or a second passage. Measured at 135 million
(results/real-models.md); where it ends is not known."""


def follows_instructions(model: LanguageModel) -> bool:
    """Whether the model follows instructions: it declares no list of tasks that it was trained for."""
    return model.profile.tasks is None


def is_small(model: LanguageModel | None) -> bool:
    """Whether the model follows instructions and has fewer than ``SMALL`` weights, as far as it says."""
    if model is None or model.profile.parameters is None:
        return False
    return model.profile.parameters < SMALL and follows_instructions(model)


def speaks(model: LanguageModel, task: Task) -> bool:
    """Whether the model can be given the task: it declares no list of tasks, or the task is on it."""
    taught = model.profile.tasks
    return taught is None or task.name in taught


def require_task(method: str, model: LanguageModel, task: Task, alternative: str) -> None:
    """Raise MissingCapability for a model that was not taught the task."""
    if not speaks(model, task):
        raise MissingCapability(method, model, [f"the task {task.name!r}"], alternative)


def require(method: str, role: str, model: LanguageModel | None, needs: Capabilities, otherwise: str = "") -> None:
    """Raise MissingCapability where the model in the setting ``role``, if there is one, offers less than ``needs``."""
    if model is not None and (lacking := model.capabilities.lacking(needs)):
        raise MissingCapability(method, model, lacking, f"Give another {role} with <--set {role}=MODEL>{otherwise}.")

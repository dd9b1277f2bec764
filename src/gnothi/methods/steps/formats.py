"""Which tasks a model can be given. Most are told what to do by an instruction; one with a format of its own knows only the
tasks that it was taught, and any other would be rubbish to it."""

from __future__ import annotations

from gnothi.errors import MissingCapability
from gnothi.protocols import LanguageModel
from gnothi.types import Task


def speaks(model: LanguageModel, task: Task) -> bool:
    """Whether the model can be given the task: it declares no list of tasks, or the task is on it."""
    tasks: frozenset[str] | None = getattr(model, "tasks", None)
    return tasks is None or task.name in tasks


def require_task(method: str, model: LanguageModel, task: Task, alternative: str) -> None:
    """Raise MissingCapability for a model that was not taught the task."""
    if not speaks(model, task):
        raise MissingCapability(method, model.name, [f"the task {task.name!r}"], alternative)

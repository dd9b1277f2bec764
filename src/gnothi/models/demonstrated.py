"""A model that is shown other demonstrations than the usual ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.tasks.sets import shipped, tasks_of
from gnothi.types import Prompt, Task


def demonstrated(spec: str) -> dict[Task, Task]:
    """What stands for which default task in the set ``spec``. Raises InvalidInput."""
    own = tasks_of(spec)
    return {task: own[key] for key, task in shipped().items() if own[key] != task}


class Demonstrated(Wrapper):
    """Shows other tasks ``instead`` of some. A task whose demonstrations were chosen for the question, from a reference of
    labelled ones say, keeps them."""

    def __init__(self, model: LanguageModel, instead: Mapping[Task, Task]) -> None:
        super().__init__(model)
        self._instead = instead

    def _shown(self, prompt: Prompt) -> Prompt:
        other = self._instead.get(prompt.task)
        return prompt if other is None else replace(prompt, task=other)

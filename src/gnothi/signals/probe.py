"""What the signals ``probe`` and ``question`` have learnt: how likely a model is to answer wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gnothi.types import Prompt, StateSpec, Task


@runtime_checkable
class Probe(Protocol):
    """Tells how likely a model is to answer wrongly (or to be uncertain, where it was trained to tell that)."""

    @property
    def name(self) -> str: ...

    @property
    def states(self) -> tuple[StateSpec, ...]:
        """Which states of a prompt it reads, one after the other; none where it knows only the wording of questions."""
        ...

    @property
    def task(self) -> Task | None:
        """As what the question is put to the model to read its states; None: as the prompt has it."""
        ...

    @property
    def thresholds(self) -> Mapping[str, float]:
        """By signal, ``probe`` or ``question``: where it best tells right from wrong on questions that it was not fitted on.
        Empty where nobody found out."""
        ...

    def wrong_by_state(self, state: NDArray[np.floating]) -> float:
        """In [0, 1], of the ``states`` of a prompt in one row. Raises InvalidInput for one of another size."""
        ...

    def wrong_by_words(self, question: str) -> float:
        """In [0, 1], of the wording of a question."""
        ...


def as_task(prompt: Prompt, task: Task | None) -> Prompt:
    """The question of the prompt as a prompt of ``task``; None: the prompt itself."""
    return prompt if task is None else Prompt(task, prompt.question, prompt.passages, prompt.choices)

"""Signals that were learnt: the chance of a wrong answer, told before anything is generated.

``probe`` reads a hidden state of the prompt by logistic regression (Azaria and Mitchell 2023; of questions, before an answer:
P(IK) of Kadavath et al. 2022, section 5; semantic entropy probes of Kossen et al. 2024; Probing-RAG of Baek et al. 2024). It
takes one forward pass. ``question`` reads the words of the question and takes no model at all. ``gnothi train probe`` makes
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gnothi.protocols import LanguageModel
from gnothi.signals.base import Foreseen
from gnothi.types import Capabilities, Prompt, StateSpec, Task


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


def put(prompt: Prompt, task: Task | None) -> Prompt:
    """The question of the prompt as a prompt of ``task``; None: the prompt itself."""
    return prompt if task is None else Prompt(task, prompt.question, prompt.passages, prompt.choices)


@dataclass(frozen=True, slots=True)
class StateProbe(Foreseen):
    """By the state of a prompt before the reply. A probe with a ``task`` of its own asks about the whole question, with the
    passages of the prompt: a chain of thought begun so far plays no part."""

    probe: Probe

    name: ClassVar[str] = "probe"
    needs: ClassVar[Capabilities] = Capabilities(hidden_states=True)
    default_threshold: ClassVar[float | None] = 0.5

    async def foresee(self, model: LanguageModel, prompt: Prompt) -> float:
        """The uncertainty, without a reply."""
        asked = put(prompt, self.probe.task)
        found = await model.states(asked, self.probe.states)
        return self.probe.wrong_by_state(np.concatenate(found.states))


@dataclass(frozen=True, slots=True)
class QuestionProbe(Foreseen):
    """By the wording of the question alone: the same whatever passages or beginnings of an answer stand in the prompt."""

    probe: Probe

    name: ClassVar[str] = "question"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.5

    async def foresee(self, model: LanguageModel, prompt: Prompt) -> float:  # noqa: ARG002
        """The uncertainty, without a reply."""
        return self.probe.wrong_by_words(prompt.question)

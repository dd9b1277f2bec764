"""The chance of a wrong answer, read off a hidden state of the prompt before anything is generated: one forward pass.

By logistic regression (Azaria and Mitchell 2023; of questions, before an answer: P(IK) of Kadavath et al. 2022, section 5;
semantic entropy probes of Kossen et al. 2024; Probing-RAG of Baek et al. 2024). `gnothi train probe` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gnothi.protocols import LanguageModel
from gnothi.signals.base import PromptSignal
from gnothi.signals.probe import Probe, as_task
from gnothi.types import Capabilities, Prompt


@dataclass(frozen=True, slots=True)
class StateProbe(PromptSignal):
    """By the state of a prompt before the reply. A probe with a ``task`` of its own asks about the whole question, with the
    passages of the prompt: a chain of thought begun so far plays no part."""

    probe: Probe

    name: ClassVar[str] = "probe"
    needs: ClassVar[Capabilities] = Capabilities(hidden_states=True)
    default_threshold: ClassVar[float | None] = 0.5

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:
        """The uncertainty, without a reply."""
        question = as_task(prompt, self.probe.task)
        reading = await model.states(question, self.probe.states)
        return self.probe.wrong_by_state(np.concatenate(reading.states))

"""The chance of a wrong answer, from the words of the question alone: it takes no model. `gnothi train probe` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.protocols import LanguageModel
from gnothi.signals.base import PromptSignal
from gnothi.signals.probe import Probe
from gnothi.types import Capabilities, Prompt


@dataclass(frozen=True, slots=True)
class QuestionProbe(PromptSignal):
    """By the wording of the question alone: the same whatever passages or beginnings of an answer stand in the prompt."""

    probe: Probe

    name: ClassVar[str] = "question"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.5

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:  # noqa: ARG002
        """The uncertainty, without a reply."""
        return self.probe.wrong_by_words(prompt.question)

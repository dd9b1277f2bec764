"""Direct answer: the model's short reply from memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel
from gnothi.types import Answer, Prompt, Question


@dataclass(frozen=True, slots=True)
class Direct(AnsweringSettings):
    """A short answer from memory, without reasoning or retrieval."""

    model: LanguageModel

    name: ClassVar[str] = "direct"
    usual_tokens: ClassVar[int] = 600

    async def __call__(self, question: Question) -> Answer:
        return await self.answer_at_once(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the model is asked."""
        return ask(ANSWER, question)

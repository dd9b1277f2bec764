"""Chain of thought (Wei et al. 2022; without demonstrations Kojima et al. 2022): reason from memory, then conclude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.fields import setting
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ask, reasoning
from gnothi.methods.steps.settings import CHAIN_STOPS
from gnothi.protocols import LanguageModel
from gnothi.types import Answer, Question


@dataclass(frozen=True, slots=True)
class ChainOfThought(AnsweringSettings):
    """Step-by-step reasoning from memory, without retrieval."""

    model: LanguageModel
    demonstrations: bool = setting(True, "Show worked examples; false: zero-shot, only told to think step by step.")

    name: ClassVar[str] = "cot"
    usual_tokens: ClassVar[int] = 1_000

    async def __call__(self, question: Question) -> Answer:
        prompt = ask(reasoning(self.demonstrations), question)
        measured = await self.make_signal(self.signal).measure(self.model, prompt, self.decoding(CHAIN_STOPS))
        return await self.conclusion_of(self.model, prompt, measured)

"""Chain of thought (Wei et al. 2022): reason step by step from memory, then conclude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.methods.answering import AnsweringSettings
from gnothi.methods.prompts import REASON, ask
from gnothi.methods.settings import CHAIN_STOPS
from gnothi.protocols import LanguageModel
from gnothi.types import Answer, Capabilities, Question


@dataclass(frozen=True, slots=True)
class ChainOfThought(AnsweringSettings):
    """Step-by-step reasoning from memory, without retrieval."""

    model: LanguageModel

    name: ClassVar[str] = "cot"

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs

    async def __call__(self, question: Question) -> Answer:
        prompt = ask(REASON, question)
        measured = await self.make_signal(self.signal).measure(self.model, prompt, self.decoding(CHAIN_STOPS))
        return await self.conclusion_of(self.model, prompt, measured)

"""Chain of thought (Wei et al. 2022; without demonstrations Kojima et al. 2022): reason from memory, then conclude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.methods.answers import as_choice
from gnothi.methods.chain import conclude
from gnothi.methods.prompts import ask, reasoning
from gnothi.methods.settings import CHAIN_STOPS, SHORT_STOPS, SignalSettings, needs_of, setting
from gnothi.protocols import LanguageModel
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Question


@dataclass(frozen=True, slots=True)
class ChainOfThought(SignalSettings):
    """Step-by-step reasoning from memory, without retrieval."""

    model: LanguageModel
    demonstrations: bool = setting(True, "Show worked examples; false: zero-shot, only told to think step by step.")
    signal: SignalName | None = setting(None, "Uncertainty of the chain; none: perplexity where the model tells it.")

    name: ClassVar[str] = "cot"

    @property
    def needs(self) -> Capabilities:
        return needs_of(self.signal)

    async def __call__(self, question: Question) -> Answer:
        prompt = ask(reasoning(self.demonstrations), question)
        measured = await self.make_signal(self.signal).measure(self.model, prompt, self.decoding(CHAIN_STOPS))
        conclusion = await conclude(self.model, prompt, measured.greedy, self.decoding(SHORT_STOPS))
        return Answer(as_choice(conclusion.answer, question.choices), conclusion.rationale, uncertainty=measured.score)

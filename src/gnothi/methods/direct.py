"""Direct answer: the model's short reply from memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.methods.answers import as_choice, short_answer
from gnothi.methods.prompts import ANSWER, ask
from gnothi.methods.settings import SHORT_STOPS, SignalSettings, needs_of, setting
from gnothi.protocols import LanguageModel
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Question


@dataclass(frozen=True, slots=True)
class Direct(SignalSettings):
    """A short answer from memory, without reasoning or retrieval."""

    model: LanguageModel
    signal: SignalName | None = setting(None, "Uncertainty of the answer; none: perplexity where the model tells it.")

    name: ClassVar[str] = "direct"

    @property
    def needs(self) -> Capabilities:
        return needs_of(self.signal)

    async def __call__(self, question: Question) -> Answer:
        measured = await self.make_signal(self.signal).measure(self.model, ask(ANSWER, question), self.decoding(SHORT_STOPS))
        return Answer(as_choice(short_answer(measured.greedy.text), question.choices), uncertainty=measured.score)

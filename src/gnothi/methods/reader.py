"""The last step of methods that retrieve: an answer from the passages they kept, or from memory where none is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.methods.answers import as_choice, short_answer
from gnothi.methods.chain import conclude
from gnothi.methods.prompts import ANSWER, REASON, ask
from gnothi.methods.settings import CHAIN_STOPS, SHORT_STOPS, SignalSettings, setting
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.signals.registry import SignalName
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Decoding, Passage, Prompt, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings(SignalSettings):
    """How a reader answers, and what tells how uncertain it was."""

    reason: bool = setting(True, "Reason step by step before answering; false: a short answer at once.")
    signal: SignalName | None = setting(None, "Uncertainty of the answer; none: perplexity where the model tells it.")

    @property
    def reply_decoding(self) -> Decoding:
        return self.decoding(CHAIN_STOPS if self.reason else SHORT_STOPS)

    def reading(self, question: Question, passages: Sequence[Passage] = ()) -> Prompt:
        """What the reader is asked; without passages it answers from memory."""
        return ask(REASON if self.reason else ANSWER, question, passages)

    async def read(self, model: LanguageModel, question: Question, passages: Sequence[Passage] = ()) -> Answer:
        """The answer of ``model`` from the passages."""
        prompt = self.reading(question, passages)
        measured = await self.make_signal(self.signal).measure(model, prompt, self.reply_decoding)
        return await self.answer_from(model, question, prompt, measured)

    async def answer_from(self, model: LanguageModel, question: Question, prompt: Prompt, measured: Measured) -> Answer:
        """The answer that the reply to a ``reading`` comes to."""
        if self.reason:
            conclusion = await conclude(model, prompt, measured.greedy, self.decoding(SHORT_STOPS))
            text, rationale = conclusion.answer, conclusion.rationale
        else:
            text, rationale = short_answer(measured.greedy.text), ""
        return Answer(as_choice(text, question.choices), rationale, prompt.passages, measured.score)

    async def draft(self, model: LanguageModel, question: Question, passages: Sequence[Passage]) -> tuple[str, ...]:
        """A first short answer from the passages, to filter them by (FILCO); none where there is nothing to say."""
        if not passages:
            return ()
        reply = await model.generate(ask(ANSWER, question, passages), self.decoding(SHORT_STOPS))
        answer = short_answer(reply.text)
        return () if says_nothing(answer) else (answer,)

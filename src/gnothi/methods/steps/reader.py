"""The last step of methods that retrieve: an answer from the passages they kept, or from memory where none is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.parsing import short_answer
from gnothi.methods.steps.prompts import ANSWER, REASON, ask
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS, setting
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Decoding, Passage, Prompt, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings(AnsweringSettings):
    """How a reader answers, and what tells how uncertain it was."""

    reason: bool = setting(True, "Reason step by step before answering; false: a short answer at once.")

    @property
    def reply_decoding(self) -> Decoding:
        return self.decoding(CHAIN_STOPS if self.reason else SHORT_STOPS)

    def reading(self, question: Question, passages: Sequence[Passage] = ()) -> Prompt:
        """What the reader is asked; without passages it answers from memory."""
        return ask(REASON if self.reason else ANSWER, question, passages)

    async def read(self, model: LanguageModel, question: Question, passages: Sequence[Passage] = ()) -> Answer:
        """The answer of ``model`` from the passages."""
        return await self.reply(model, self.reading(question, passages))

    async def reply(self, model: LanguageModel, prompt: Prompt) -> Answer:
        """The answer of ``model`` to a ``reading``."""
        if not self.reason:
            return await self.answer_at_once(model, prompt)
        measured = await self.make_signal(self.signal).measure(model, prompt, self.reply_decoding)
        return await self.answer_from(model, prompt, measured)

    async def answer_from(self, model: LanguageModel, prompt: Prompt, measured: Measured) -> Answer:
        """The answer that the reply to a ``reading`` comes to."""
        return await (self.conclusion_of if self.reason else self.answer_of)(model, prompt, measured)

    async def draft(self, model: LanguageModel, question: Question, passages: Sequence[Passage]) -> tuple[str, ...]:
        """A first short answer from the passages, to filter them by (FILCO); none where there is nothing to say."""
        if not passages:
            return ()
        reply = await model.generate(ask(ANSWER, question, passages), self.decoding(SHORT_STOPS))
        answer = short_answer(reply.text)
        return () if says_nothing(answer) else (answer,)

"""The last step of methods that retrieve: an answer from the passages they kept, or from memory where none is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi.fields import setting
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, REASON, ask
from gnothi.methods.steps.requirements import follows_instructions, is_small
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS
from gnothi.methods.steps.wording import looks_one_hop, naming
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.types import Answer, Decoding, Passage, Prompt, Question

Reason = Literal["auto"] | bool


def reasons_about(reason: Reason, question: Question, model: LanguageModel | None, passages: Sequence[Passage] = ()) -> bool:
    """Whether ``model`` is to answer the question, from the passages, by a chain of thought. With ``auto`` one told what
    to do by instructions answers at once what one fact seems to answer; one with tasks of its own reasons as it was taught."""
    if reason != "auto":
        return reason
    return (model is not None and not follows_instructions(model)) or not looks_one_hop(question, passages)


def asks_for_chain(prompt: Prompt) -> bool:
    return prompt.task.name == REASON.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings(AnsweringSettings):
    """How a reader answers, and what tells how uncertain it was."""

    reason: Reason = setting(
        "auto",
        "Reason step by step before answering; false: a short answer at once; auto: where one fact does not seem enough, and "
        "never with a small model.",
    )
    focus: bool = setting(
        True,
        "With reason=auto, answer at once from the passages that hold most of the question's names; a small model from the "
        "first of those that a search found.",
    )

    group: ClassVar[str] = "reading"

    @property
    def searches_draft(self) -> bool:
        """Whether what the model says first is searched with: a chain of thought holds more for that than an answer."""
        return False

    def reading(self, question: Question, passages: Sequence[Passage] = (), model: LanguageModel | None = None) -> Prompt:
        """What the reader (None: the method's model) is asked; without passages it answers from memory."""
        if self.reasons(question, passages, model):
            return ask(REASON, question, passages)
        return ask(ANSWER, question, naming(question.text, passages) if self._focuses else passages)

    def reasons(self, question: Question, passages: Sequence[Passage] = (), model: LanguageModel | None = None) -> bool:
        """Whether the reader is to answer by a chain of thought. With ``auto`` a small model is not."""
        model = model or getattr(self, "model", None)
        if self.reason != "auto" or (self.searches_draft and not passages):
            return self.reason is not False
        return not is_small(model) and reasons_about("auto", question, model, passages)

    def selected(self, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """Of what a search found, best first, what the reader is shown: all, and with ``focus`` a small model the first of
        those that hold most of the question's names. What a filter chose is not cut further."""
        if self._focuses and is_small(getattr(self, "model", None)):
            return naming(question.text, passages)[:1]
        return tuple(passages)

    @property
    def _focuses(self) -> bool:
        return self.focus and self.reason == "auto"

    def reply_decoding(self, prompt: Prompt) -> Decoding:
        """How the reply to a ``reading`` is generated."""
        return self.decoding(CHAIN_STOPS if asks_for_chain(prompt) else SHORT_STOPS)

    async def read(self, model: LanguageModel, question: Question, passages: Sequence[Passage] = ()) -> Answer:
        """The answer of ``model`` from the passages."""
        return await self.reply(model, self.reading(question, passages, model))

    async def reply(self, model: LanguageModel, prompt: Prompt) -> Answer:
        """The answer of ``model`` to a ``reading``."""
        if not asks_for_chain(prompt):
            return await self.answer_at_once(model, prompt)
        measured = await self.make_signal(self.signal).measure(model, prompt, self.reply_decoding(prompt))
        return await self.answer_from(model, prompt, measured)

    async def answer_from(self, model: LanguageModel, prompt: Prompt, measured: Measured) -> Answer:
        """The answer that the reply to a ``reading`` comes to."""
        return await (self.conclusion_of if asks_for_chain(prompt) else self.answer_of)(model, prompt, measured)

    async def draft(self, model: LanguageModel, question: Question, passages: Sequence[Passage]) -> tuple[str, ...]:
        """A first short answer from the passages, to filter them by (FILCO); none where there is nothing to say."""
        if not passages:
            return ()
        reply = await model.generate(ask(ANSWER, question, passages), self.decoding(SHORT_STOPS))
        draft = read_reply(reply.text, question.text)
        return () if draft.abstains else (draft.answer,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSettings(ReaderSettings):
    """Of a reader that is given single sentences of passages."""

    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")

    group: ClassVar[str] = "sentences"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingSettings(ReaderSettings):
    """Of a method that draws several answers before it reads."""

    temperature: float = setting(1.0, "Temperature of answers drawn at random.", at_least=0.01)
    top_k: int = setting(50, "They are drawn from this many likeliest tokens (0: all).", at_least=0)
    top_p: float = setting(
        0.9, "They are drawn from the likeliest tokens that make up this probability (1: all).", at_least=0.0, at_most=1.0
    )

    group: ClassVar[str] = "draws"

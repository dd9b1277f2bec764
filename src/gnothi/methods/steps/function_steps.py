"""What a method that is a function works with: the steps that methods share, over its model and its index, for one question."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from gnothi import events
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.steps import searching
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.requirements import require_task
from gnothi.methods.steps.settings import CHAIN_STOPS, needs_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Measured, PromptSignal, Signal
from gnothi.signals.gate import Gate, decisive
from gnothi.signals.registry import name_of
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Passage, Prompt, Question, Task

LARGEST = sys.float_info.max
"""A threshold without end, as a function sees it: only a draft that says nothing is above it, as for every gate."""


@dataclass(frozen=True, slots=True)
class Draft(Answer):
    """An answer from memory. ``reply`` is the whole reply, on one line; ``uncertainty`` is the signal's, and infinite where the
    reply says nothing, or that the model does not know; ``measured`` is what is kept of it."""

    uncertainty: float = math.inf
    reply: str = ""
    measured: float | None = None

    def as_answer(self) -> Answer:
        """As rows have it."""
        return Answer(self.text, self.rationale, self.evidence, self.measured)


@dataclass(frozen=True, slots=True)
class Steps:
    """``model`` and ``retriever`` are the main ones, for what no step here does. Where the method has a ``threshold``, each
    signal that is measured from memory is held against it, and the decision recorded.

    A question is the method's own, or a text: one that comes up on the way. Raises what model and index raise.
    """

    model: LanguageModel
    retriever: Retriever | None
    question: Question
    threshold: float | None
    _reader: ReaderSettings
    _name: str

    async def draft(self, question: Question | str, *, signal: str | Signal | None = None) -> Draft:
        """Answer from memory. ``signal`` says how uncertain that is; None: the one that answers are measured with."""
        question, reader = self._question(question), self._measuring(signal)
        prompt = reader.reading(question)
        measured = await self._measured(reader, prompt, signal is not None)
        answer = await reader.answer_from(self.model, prompt, measured)
        reply = " ".join(measured.greedy.text.split())
        return Draft(answer.text, answer.rationale, answer.evidence, _doubt(measured), reply, answer.uncertainty)

    async def search(self, query: Question | str, k: int) -> tuple[Passage, ...]:
        """The ``k`` best passages of the index, best first. Raises InvalidSetting where there is none."""
        if self.retriever is None:
            raise InvalidSetting(
                f"method {self._name!r} searches, but was made with searches=False and so has no index. Leave that out."
            )
        text = self._question(query).text
        return await searching.search(self.retriever, text, k) if text.strip() else ()

    async def read(
        self, question: Question | str, passages: Iterable[Passage], *, signal: str | Signal | None = None
    ) -> Answer:
        """Answer from passages, each read once; from memory where there are none. ``signal`` as for ``draft``. Raises
        InvalidSetting for what are no passages."""
        question, reader = self._question(question), self._measuring(signal)
        different: dict[str, Passage] = {}
        for one in self._passages(passages):
            different.setdefault(one.id, one)
        return await reader.read(self.model, question, reader.selected(question, tuple(different.values())))

    async def measure(self, question: Question | str, *, signal: str | Signal, passages: Iterable[Passage] = ()) -> float:
        """How uncertain the model is about its reply, which is not kept; infinite where nothing can be measured."""
        question, reader = self._question(question), self._measuring(signal)
        prompt = reader.reading(question, self._passages(passages))
        used = reader.make_signal(reader.signal)
        if not isinstance(used, PromptSignal):
            return _doubt(await self._measured(reader, prompt, not prompt.passages))
        doubt = min(decisive(await used.from_prompt(self.model, prompt)), LARGEST)
        if self.threshold is not None and not prompt.passages:
            verdict = "trust" if doubt <= self.threshold else "retrieve"
            score = doubt if doubt < LARGEST else None
            events.emit(events.Decided("retrieve", used.name, score, self.threshold, verdict, question.text))
        return doubt

    async def ask(self, instruction: str, text: Question | str, passages: Iterable[Passage] = ()) -> str:
        """What the model says to an instruction of your own: a query, a verdict. Raises MissingCapability for a model that
        follows no instructions."""
        task = Task("asked", instruction, answer_label="Reply:")
        require_task(self._name, self.model, task, "Use a model that follows instructions.")
        prompt = Prompt(task, self._question(text).text, self._passages(passages))
        return (await self.model.generate(prompt, self._reader.decoding(CHAIN_STOPS))).text.strip()

    def _question(self, question: Question | str) -> Question:
        if not isinstance(question, Question | str):
            raise InvalidSetting(
                f"method {self._name!r}: got {question!r:.80} as a question or query, expected the question or a text."
            )
        return question if isinstance(question, Question) else replace(self.question, text=question, choices=(), answers=())

    def _passages(self, passages: Any) -> tuple[Passage, ...]:
        listed = tuple(passages) if isinstance(passages, Iterable) else (passages,)
        for one in listed:
            if not isinstance(one, Passage):
                forgotten = ""
                if inspect.iscoroutine(one):
                    one.close()  # else Python warns of it later, wherever it is collected
                    forgotten = " Put `await` before steps.search(...)."
                raise InvalidSetting(
                    f"method {self._name!r}: got {one!r:.80} among passages, expected gnothi.Passage.{forgotten}"
                )
        return listed

    def _measuring(self, signal: str | Signal | None) -> ReaderSettings:
        """The reader with that signal. Raises UnknownName, or MissingCapability where the model lacks what it needs."""
        if signal is None:
            return self._reader
        named = name_of(signal)
        if lacking := self.model.capabilities.lacking(needs_of(named)):
            raise MissingCapability(self._name, self.model, lacking, f"The signal {named!r} needs them: use another.")
        reader: Any = self._reader
        return replace(reader, signal=named)  # type: ignore[no-any-return]

    async def _measured(self, reader: ReaderSettings, prompt: Prompt, decides: bool) -> Measured:
        """The reply to the prompt; where that ``decides``, held against the threshold."""
        signal, decoding = reader.make_signal(reader.signal), reader.reply_decoding(prompt)
        if decides and self.threshold is not None:
            return (await Gate(signal, self.threshold)(self.model, prompt, decoding)).measured
        return await signal.measure(self.model, prompt, decoding)


def _doubt(measured: Measured) -> float:
    """Above any threshold where, and only where, a gate would fire at it."""
    return math.inf if says_nothing(measured.greedy.text) else min(decisive(measured.uncertainty), LARGEST)

"""What is known of a question, stage by stage, and what a learnt gate makes of it: to search, to read, to believe."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gnothi import events
from gnothi.events import Usage
from gnothi.filtering.learned import GateSource, LearnedGate, Weighed
from gnothi.filtering.traits import (
    AFTER_SEARCH,
    DRAFT,
    QUESTION,
    READING,
    SEARCH,
    Texts,
    traits,
    traits_of_reading,
    traits_of_search,
)
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.signals.gate import decisive
from gnothi.signals.kinds.least_likely import least_likely
from gnothi.types import Answer, Passage, Question, ScoredPassage

SIGNAL = LearnedGate.signal
_DECIDES: Mapping[str, tuple[str, str, str]] = {
    SEARCH: ("read", "read", "trust"),
    READING: ("choose", "evidence", "memory"),
}
"""What a step after the search decides, and what going on and stopping are called; before it, whether to retrieve."""
Read = Callable[[Question, tuple[Passage, ...]], Awaitable[Answer]]


def decides_on_search(gate: GateSource) -> bool:
    """Whether it has a step before the search: none where searches cost nothing."""
    return any(gate.weigh(stage, {}) is not None for stage in (QUESTION, DRAFT))


@dataclass(slots=True)
class Stages:
    """Of one question. ``threshold`` stands for the gain that a search needs (None: the gate's own); without ``searching`` the
    gate has no say in whether to search. Emits Gauged at each stage where there is no gate, Decided where there is one and
    decides there."""

    gate: GateSource | None
    reader: ReaderSettings
    model: LanguageModel
    question: Question
    threshold: float | None = None
    searching: bool = True
    measured: Measured | None = None
    going_on: bool = True
    _memory: Answer | None = None
    _evidence: Answer | None = None
    _known: dict[str, float] = field(default_factory=dict)
    _last: Weighed | None = None

    async def draft(self) -> Answer:
        """The answer from memory, of the reply ``measured`` if there is one; ``going_on`` then says whether to search."""
        self._reach(QUESTION)
        with events.record() as drafting:
            prompt = self.reader.reading(self.question)
            if self.measured is None:
                signal = self.reader.make_signal(self.reader.signal)
                self.measured = await signal.measure(self.model, prompt, self.reader.reply_decoding(prompt))
            memory = await self.reader.answer_from(self.model, prompt, self.measured)
        self._memory = memory
        if self.going_on:
            weakest = least_likely(self.measured.greedy)
            doubts = {**_doubt("memory", memory), "memory's weakest word": weakest if math.isfinite(weakest) else None}
            self._reach(DRAFT, doubts, Usage.of(drafting))
        return memory

    async def better(self, passages: Sequence[ScoredPassage], read: Read) -> Answer:
        """Of the draft (made now, if there is none) and the answer that ``read`` gives from ``passages`` the better one; it
        goes no further than is worth while."""
        memory = self._memory or await self.draft()
        if not self._reach(SEARCH, traits_of_search(self.question.text, memory.text, passages)) or not passages:
            return self.answer(memory)
        with events.record() as reading:
            evidence = await read(self.question, tuple(one.passage for one in passages))
        self._evidence = evidence
        more = {**_doubt("evidence", evidence), **traits_of_reading(memory.text, evidence.text, evidence.evidence)}
        believed = self._reach(READING, more, Usage.of(reading))
        return self.answer(evidence if believed else memory)

    def answer(self, answer: Answer) -> Answer:
        """The ``answer``, or that it is not known where it is too likely wrong."""
        if self.gate is None or self._last is None:
            return answer
        right = self._last.evidence if answer is self._evidence else self._last.memory
        text = answer.text if right >= self.gate.sure_enough else UNKNOWN
        return replace(answer, text=text, uncertainty=1 - right)

    def _reach(self, stage: str, more: Mapping[str, float | None] | None = None, usage: Usage | None = None) -> bool:
        """Whether to go on from this stage, where ``more`` is known beside the texts, for ``usage``."""
        self._note(stage, more or {}, usage or Usage())
        if self.gate is not None and (stage in AFTER_SEARCH or self.searching):
            self._weigh(self.gate, stage)
        return self.going_on

    def _note(self, stage: str, more: Mapping[str, float | None], usage: Usage) -> None:
        answers = [one.text if one else None for one in (self._memory, self._evidence)]
        texts = Texts(self.question.text, *answers)
        values = {name: value for name, (when, value) in traits(texts).items() if when == stage} | dict(more)
        self._known |= {name: value for name, value in values.items() if value is not None}
        if self.gate is None:
            took = usage.model_calls, usage.prompt_tokens, usage.generated_tokens
            gauges = tuple(events.Gauge(f"{stage}: {name}", value, *took) for name, value in values.items())
            events.emit(events.Gauged(answers[1] or answers[0] or "", gauges))

    def _weigh(self, gate: GateSource, stage: str) -> None:
        """What the gate makes of what is known."""
        weighed = gate.weigh(stage, self._known)
        if weighed is None:
            return
        kind, on, off = _DECIDES.get(stage, ("retrieve", "retrieve", "trust"))
        if kind == "retrieve" and self.threshold is not None:
            weighed = replace(weighed, needed=self.threshold, on=decisive(weighed.gain) > self.threshold)
        self._last, self.going_on = weighed, weighed.on
        verdict = on if self.going_on else off
        events.emit(events.Decided(kind, SIGNAL, weighed.gain, weighed.needed, verdict, self.question.text))


def _doubt(whose: str, answer: Answer) -> dict[str, float | None]:
    return {f"{whose} doubt": spread(answer.uncertainty)}


UNKNOWN = "unknown"


def spread(uncertainty: float | None) -> float | None:
    """Perplexities spread over magnitudes; None where there is none."""
    return None if uncertainty is None or not math.isfinite(uncertainty) else math.log1p(max(uncertainty, 0.0))

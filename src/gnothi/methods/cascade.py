"""A learnt gate, ours: is a search worth its price, and is what it brought to be believed? Cheap first, stage by stage.

``gnothi train gate`` learns it from a run of this very method without a gate, which goes to the end and records what is known
at each stage, beside a run of a method that answers from memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.events import Usage
from gnothi.filtering.learned import GateSource, LearnedGate, Weighed
from gnothi.filtering.traits import (
    CHECKING,
    DRAFT,
    QUESTION,
    READING,
    SEARCH,
    Texts,
    traits,
    traits_of_checking,
    traits_of_reading,
    traits_of_search,
)
from gnothi.methods.ircot import IRCoT
from gnothi.methods.steps.prompts import ANSWER, ask, require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import resource, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.kinds.least_likely import least_likely
from gnothi.types import Answer, Passage, Question

UNKNOWN = "unknown"
SIGNAL = LearnedGate.signal
_DECIDES: Mapping[str, tuple[str, str, str]] = {
    SEARCH: ("read", "read", "trust"),
    READING: ("choose", "evidence", "memory"),
    CHECKING: ("choose", "evidence", "memory"),
}
"""What a step after the search decides, and what going on and stopping are called; before it, whether to retrieve."""


@dataclass(frozen=True, slots=True)
class LearnedCascade(ReaderSettings):
    """An answer from memory, a search, an answer from evidence, a look at each passage alone: as far as a learnt gate finds it
    worth while; then the better answer of the two, or none. Without a gate it goes to the end, answers from evidence, and
    records what was known when."""

    model: LanguageModel
    retriever: Retriever
    learned: GateSource | None = resource("What tells where evidence helps; none: go to the end, and record.")
    read_by: Literal["steps", "once"] = setting("steps", "Read passages in turns with further searches (IRCoT), or once.")
    k: int = setting(2, "Passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "In steps: sentences of the chain.", at_least=1)
    max_passages: int = setting(15, "In steps: passages collected over all of them.", at_least=1)

    name: ClassVar[str] = "cascade"

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        stages = _Stages(self.learned, question.text)
        stages.reach(QUESTION)
        with events.record() as drafting:
            memory, weakest = await self._from_memory(question)
        stages.memory = memory
        doubts = {**_doubt("memory", memory), "memory's weakest word": weakest}
        if not stages.going_on or not stages.reach(DRAFT, doubts, Usage.of(drafting)):
            return stages.answer(memory)
        found = await self.retriever.search(question.text, self.k)
        if not stages.reach(SEARCH, traits_of_search(question.text, memory.text, found)) or not found:
            return stages.answer(memory)
        with events.record() as reading:
            evidence = await self._from(question, tuple(one.passage for one in found))
        stages.evidence = evidence
        more = {**_doubt("evidence", evidence), **traits_of_reading(memory.text, evidence.text, evidence.evidence)}
        believed = stages.reach(READING, more, Usage.of(reading))
        if stages.checks:
            with events.record() as checking:
                alone = await self._alone(question, memory, evidence, tuple(one.passage for one in found))
            believed = stages.reach(CHECKING, alone, Usage.of(checking))
        return stages.answer(evidence if believed else memory)

    async def _from_memory(self, question: Question) -> tuple[Answer, float | None]:
        """And how doubtful its weakest word is."""
        prompt = self.reading(question)
        measured = await self.make_signal(self.signal).measure(self.model, prompt, self.reply_decoding(prompt))
        weakest = least_likely(measured.greedy)
        return await self.answer_from(self.model, prompt, measured), weakest if math.isfinite(weakest) else None

    async def _from(self, question: Question, passages: tuple[Passage, ...]) -> Answer:
        if self.read_by == "once":
            return await self.read(self.model, question, passages)
        steps = IRCoT(
            self.model,
            self.retriever,
            k=self.k,
            max_steps=self.max_steps,
            max_passages=self.max_passages,
            max_tokens=self.max_tokens,
        )
        return await steps.going_on(question, passages)

    async def _alone(
        self, question: Question, memory: Answer, evidence: Answer, passages: tuple[Passage, ...]
    ) -> Mapping[str, float | None]:
        """What each passage says where it is read alone and, if the model can score, how likely it finds both answers."""
        read = (self.answer_at_once(self.model, ask(ANSWER, question, (one,))) for one in passages)
        answers = await gather(*read)
        doubts = [doubt for one in answers if (doubt := _spread(one.uncertainty)) is not None]
        found: dict[str, float | None] = dict(traits_of_checking(memory.text, evidence.text, [one.text for one in answers]))
        found |= {
            "passages alone: the least doubt": min(doubts, default=None),
            "passages alone: doubt on average": sum(doubts) / len(doubts) if doubts else None,
        }
        return found | (
            await self._likelihoods(question, memory, evidence, passages) if self.model.capabilities.scoring else {}
        )

    async def _likelihoods(
        self, question: Question, memory: Answer, evidence: Answer, passages: tuple[Passage, ...]
    ) -> dict[str, float | None]:
        """Nats per token, as a short answer."""
        texts = [one.text or UNKNOWN for one in (memory, evidence)]
        without, with_ = await gather(*(self.model.score(ask(ANSWER, question, shown), texts) for shown in ((), passages)))
        each = [[one.mean_logprob for one in scored] for scored in (without, with_)]
        return {
            "memory's answer is likelier by the passages": each[1][0] - each[0][0],
            "evidence's answer is likelier by the passages": each[1][1] - each[0][1],
            "with the passages, evidence's answer is likelier": each[1][1] - each[1][0],
        }


@dataclass(slots=True)
class _Stages:
    """What is known of a question so far. Emits Gauged at each stage where there is no gate, Decided where there is one and
    decides there."""

    gate: GateSource | None
    question: str
    memory: Answer | None = None
    evidence: Answer | None = None
    going_on: bool = True
    checks: bool = True
    _known: dict[str, float] = field(default_factory=dict)
    _last: Weighed | None = None

    def reach(self, stage: str, more: Mapping[str, float | None] | None = None, usage: Usage | None = None) -> bool:
        """Whether to go on from this stage, where ``more`` is known beside the texts, for ``usage``."""
        said = [one.text if one else None for one in (self.memory, self.evidence)]
        texts = Texts(self.question, *said)
        found = {name: value for name, (when, value) in traits(texts).items() if when == stage} | dict(more or {})
        self._known |= {name: value for name, value in found.items() if value is not None}
        if self.gate is None:
            spent = usage or Usage()
            took = spent.model_calls, spent.prompt_tokens, spent.generated_tokens
            gauges = tuple(events.Gauge(f"{stage}: {name}", value, *took) for name, value in found.items())
            events.emit(events.Gauged(said[1] or said[0] or "", gauges))
            return True
        weighed = self.gate.weigh(stage, self._known)
        self.checks = weighed is not None and weighed.checks
        if weighed is not None and weighed.check is not None:
            verdict = "check" if weighed.checks else "trust"
            events.emit(events.Decided("check", SIGNAL, *weighed.check, verdict, self.question))
        if weighed is not None and not weighed.checks:
            self._last, self.going_on = weighed, weighed.on
            kind, on, off = _DECIDES.get(stage, ("retrieve", "retrieve", "trust"))
            verdict = on if self.going_on else off
            events.emit(events.Decided(kind, SIGNAL, weighed.gain, weighed.needed, verdict, self.question))
        return self.going_on

    def answer(self, taken: Answer) -> Answer:
        """The answer ``taken``, or that it is not known where it is too likely wrong."""
        if self.gate is None or self._last is None:
            return taken
        right = self._last.evidence if taken is self.evidence else self._last.memory
        text = taken.text if right >= self.gate.sure_enough else UNKNOWN
        return replace(taken, text=text, uncertainty=1 - right)


def _doubt(whose: str, answer: Answer) -> dict[str, float | None]:
    return {f"{whose} doubt": _spread(answer.uncertainty)}


def _spread(uncertainty: float | None) -> float | None:
    """Perplexities spread over magnitudes; None where there is none."""
    return None if uncertainty is None or not math.isfinite(uncertainty) else math.log1p(max(uncertainty, 0.0))

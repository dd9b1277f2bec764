"""What is known of a question, stage by stage, and what a learnt gate makes of it: to look, to search, to read, to believe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gnothi import events
from gnothi.concurrency import gather
from gnothi.events import Usage
from gnothi.filtering.learned import GateSource, LearnedGate, Weighed
from gnothi.filtering.traits import (
    AFTER_SEARCH,
    CHECKING,
    DRAFT,
    LOOKS,
    QUESTION,
    READING,
    SEARCH,
    WEIGHING,
    Texts,
    traits,
    traits_of_checking,
    traits_of_reading,
    traits_of_search,
)
from gnothi.methods.steps import learned_gate_features as looks
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ANSWER, EQUIVALENT, ask
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.requirements import speaks
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.signals.gate import decisive
from gnothi.signals.judge import says_yes
from gnothi.signals.kinds.least_likely import least_likely
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Passage, Prompt, Question, ScoredPassage

SIGNAL = LearnedGate.signal
_DECIDES: Mapping[str, tuple[str, str, str]] = {
    SEARCH: ("read", "read", "trust"),
    READING: ("choose", "evidence", "memory"),
}
"""What a step after the search decides, and what going on and stopping are called; before it, whether to retrieve."""
_CHEAP = (CHECKING,)
"""What is looked at without a gate, unless everything is to be recorded."""
Read = Callable[[Question, tuple[Passage, ...]], Awaitable[Answer]]


def decides_on_search(gate: GateSource) -> bool:
    """Whether it has a step before the search: none where searches cost nothing."""
    return any(gate.weigh(stage, {}) is not None for stage in (QUESTION, DRAFT))


@dataclass(slots=True)
class Stages:
    """Of one question. ``threshold`` stands for the gain that a search needs (None: the gate's own); without ``searching`` the
    gate has no say in whether to search. Emits Gauged at each stage where there is no gate, ``every`` one or those that are
    cheap; Decided where there is one and decides there."""

    gate: GateSource | None
    reader: ReaderSettings
    model: LanguageModel
    question: Question
    threshold: float | None = None
    searching: bool = True
    every: bool = False
    measured: Measured | None = None
    going_on: bool = True
    _memory: Answer | None = None
    _evidence: Answer | None = None
    _passages: tuple[Passage, ...] = ()
    _known: dict[str, float] = field(default_factory=dict)
    _last: Weighed | None = None

    async def draft(self) -> Answer:
        """The answer from memory, of the reply ``measured`` if there is one; ``going_on`` then says whether to search."""
        await self._reach(QUESTION)
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
            await self._reach(DRAFT, doubts, Usage.of(drafting))
        return memory

    async def better(self, found: Sequence[ScoredPassage], read: Read) -> Answer:
        """Of the draft (made now, if there is none) and the answer that ``read`` gives from what was ``found`` the better one;
        it goes no further than is worth while."""
        memory = self._memory or await self.draft()
        self._passages = tuple(one.passage for one in found)
        if not await self._reach(SEARCH, traits_of_search(self.question.text, memory.text, found)) or not found:
            return self.answer(memory)
        with events.record() as reading:
            evidence = await read(self.question, self._passages)
        self._evidence = evidence
        more = {**_doubt("evidence", evidence), **traits_of_reading(memory.text, evidence.text, evidence.evidence)}
        believed = await self._reach(READING, more, Usage.of(reading))
        return self.answer(evidence if believed else memory)

    def answer(self, taken: Answer) -> Answer:
        """The answer ``taken``, or that it is not known where it is too likely wrong."""
        if self.gate is None or self._last is None:
            return taken
        right = self._last.evidence if taken is self._evidence else self._last.memory
        text = taken.text if right >= self.gate.sure_enough else UNKNOWN
        return replace(taken, text=text, uncertainty=1 - right)

    async def _reach(self, stage: str, more: Mapping[str, float | None] | None = None, usage: Usage | None = None) -> bool:
        """Whether to go on from this stage, where ``more`` is known beside the texts, for ``usage``."""
        self._note(stage, more or {}, usage or Usage())
        if self.gate is None:
            for look in LOOKS.get(stage, ()):
                if self.every or look in _CHEAP:
                    await self._look(look)
        elif stage in AFTER_SEARCH or self.searching:
            await self._weigh(self.gate, stage)
        return self.going_on

    def _note(self, stage: str, more: Mapping[str, float | None], usage: Usage) -> None:
        said = [one.text if one else None for one in (self._memory, self._evidence)]
        texts = Texts(self.question.text, *said)
        found = {name: value for name, (when, value) in traits(texts).items() if when == stage} | dict(more)
        self._known |= {name: value for name, value in found.items() if value is not None}
        if self.gate is None:
            took = usage.model_calls, usage.prompt_tokens, usage.generated_tokens
            gauges = tuple(events.Gauge(f"{stage}: {name}", value, *took) for name, value in found.items())
            events.emit(events.Gauged(said[1] or said[0] or "", gauges))

    async def _weigh(self, gate: GateSource, stage: str) -> None:
        """What the gate makes of what is known, and of what it finds worth a look before it decides."""
        weighed = gate.weigh(stage, self._known)
        while weighed is not None and weighed.look is not None:
            look, gain, needed = weighed.look
            verdict = look if weighed.looks else "trust"
            events.emit(events.Decided("look", SIGNAL, gain, needed, verdict, self.question.text))
            if not weighed.looks:
                break
            await self._look(look)
            weighed = gate.weigh(look, self._known)
        if weighed is None:
            return
        kind, on, off = _DECIDES.get(stage, ("retrieve", "retrieve", "trust"))
        if kind == "retrieve" and self.threshold is not None:
            weighed = replace(weighed, needed=self.threshold, on=decisive(weighed.gain) > self.threshold)
        self._last, self.going_on = weighed, weighed.on
        verdict = on if self.going_on else off
        events.emit(events.Decided(kind, SIGNAL, weighed.gain, weighed.needed, verdict, self.question.text))

    async def _look(self, stage: str) -> None:
        """At what costs more than it takes to get here."""
        with events.record() as looking:
            found = await self._seen(stage)
        if found:
            self._note(stage, found, Usage.of(looking))

    async def _seen(self, stage: str) -> Mapping[str, float | None]:
        if stage == CHECKING:
            assert self._memory is not None
            assert self._evidence is not None  # both are there once something was read
            return await each_alone(self.reader, self.model, self.question, self._memory, self._evidence, self._passages)
        if stage == WEIGHING:
            return await looks.weighed(self.reader, self.model, self.question, self._passages)
        assert self.measured is not None  # there was a draft
        prompt = self.reader.reading(self.question)
        names = looks.signals_at(stage, self.reader, self.model) if self.gate is None else self.gate.features(stage)
        return await looks.measured(
            names, self.reader, self.model, prompt, self.reader.reply_decoding(prompt), self.measured.greedy
        )


def _doubt(whose: str, answer: Answer) -> dict[str, float | None]:
    return {f"{whose} doubt": spread(answer.uncertainty)}


UNKNOWN = "unknown"


async def each_alone(
    reader: AnsweringSettings,
    model: LanguageModel,
    question: Question,
    memory: Answer,
    evidence: Answer,
    passages: tuple[Passage, ...],
) -> Mapping[str, float | None]:
    """What each passage says where it is read alone, how many contradict most of them in the model's own judgement and, if
    it can score, how likely it finds both answers."""
    read = (reader.answer_at_once(model, ask(ANSWER, question, (one,))) for one in passages)
    answers = await gather(*read)
    doubts = [doubt for one in answers if (doubt := spread(one.uncertainty)) is not None]
    found: dict[str, float | None] = dict(traits_of_checking(memory.text, evidence.text, [one.text for one in answers]))
    found |= {
        "passages alone: the least doubt": min(doubts, default=None),
        "passages alone: doubt on average": sum(doubts) / len(doubts) if doubts else None,
        "passages alone: contradict most of them": await _contradicting(model, question, [one.text for one in answers]),
    }
    return found | (await _likelihoods(model, question, memory, evidence, passages) if model.capabilities.scoring else {})


async def _contradicting(model: LanguageModel, question: Question, said: Sequence[str]) -> float:
    """The share of passages that say something else than most of them, and do not mean the same to the model."""
    votes = Counter(normalized(text) for text in said if not says_nothing(text))
    wording = {normalized(text): text for text in said}
    if len(votes) < 2 or not speaks(model, EQUIVALENT):
        return (votes.total() - max(votes.values(), default=0)) / max(1, len(said))
    (leading, _), *others = votes.most_common()
    pairs = [(wording[leading], wording[other]) for other, _ in others]
    same = await gather(*(says_yes(model, Prompt(EQUIVALENT, question.text, choices=pair)) for pair in pairs))
    return sum(count for (_, count), means_the_same in zip(others, same, strict=True) if not means_the_same) / len(said)


async def _likelihoods(
    model: LanguageModel, question: Question, memory: Answer, evidence: Answer, passages: tuple[Passage, ...]
) -> dict[str, float | None]:
    """Nats per token, as a short answer."""
    texts = [one.text or UNKNOWN for one in (memory, evidence)]
    without, with_ = await gather(*(model.score(ask(ANSWER, question, shown), texts) for shown in ((), passages)))
    each = [[one.mean_logprob for one in scored] for scored in (without, with_)]
    return {
        "memory's answer is likelier by the passages": each[1][0] - each[0][0],
        "evidence's answer is likelier by the passages": each[1][1] - each[0][1],
        "with the passages, evidence's answer is likelier": each[1][1] - each[1][0],
    }


def spread(uncertainty: float | None) -> float | None:
    """Perplexities spread over magnitudes; None where there is none."""
    return None if uncertainty is None or not math.isfinite(uncertainty) else math.log1p(max(uncertainty, 0.0))

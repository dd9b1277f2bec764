"""Several signals of one continuation, side by side: what they share is generated once (benchmarks/panel.py: the saving)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from gnothi import events
from gnothi.concurrency import both, gather
from gnothi.events import Usage
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, Foreseen, Measured, Read, Sampling, Signal
from gnothi.types import Decoding, Generation, Prompt, Samples, StateSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """Measures ``signals``, by any names: those that are read off continuations, off one greedy continuation and one set of
    samples (for each way of drawing them) with every state that any of them wants; the others by requests of their own.

    Each comes to what its own ``measure`` comes to, since samples are the same whatever states are taken of them. Emits Gauged.
    """

    signals: Mapping[str, Signal]

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> dict[str, Measured]:
        """Under ``decoding`` (greedy), in the order of ``signals``."""
        greedy, found = await both(model.generate(prompt, decoding), self._beside(model, prompt, decoding))
        measured = {name: Measured(greedy, score) for name, score in found.of(greedy, self.signals).items()}
        gauges = tuple(_gauge(name, one.score, found.usage_of(name, self.signals)) for name, one in measured.items())
        events.emit(events.Gauged(greedy.text.strip(), gauges))
        return measured

    async def of(self, model: LanguageModel, prompt: Prompt, decoding: Decoding, greedy: Generation) -> dict[str, Measured]:
        """Beside a ``greedy`` continuation that is there already. Emits nothing."""
        found = await self._beside(model, prompt, decoding)
        return {name: Measured(greedy, score) for name, score in found.of(greedy, self.signals).items()}

    async def _beside(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> _Beside:
        """All that is asked for beside the greedy continuation."""
        alone = {name: signal for name, signal in self.signals.items() if not isinstance(signal, Read)}
        wanted = self._wanted()
        drawn, told = await both(
            gather(*(_counted(one.draw(model, prompt, decoding, list(specs))) for one, specs in wanted.items())),
            gather(*(_counted(_foretold(signal, model, prompt, decoding)) for signal in alone.values())),
        )
        states = {sampling: tuple(specs) for sampling, specs in wanted.items()}
        told_by = dict(zip(alone, told, strict=True))
        return _Beside(prompt.question, dict(zip(wanted, drawn, strict=True)), states, told_by)

    def _wanted(self) -> dict[Sampling, dict[StateSpec, None]]:
        """The states that are to be taken of each kind of samples."""
        wanted: dict[Sampling, dict[StateSpec, None]] = {}
        for signal in self.signals.values():
            if isinstance(signal, Read) and signal.drawn is not None:
                wanted.setdefault(signal.drawn, {}).update(dict.fromkeys(signal.states))
        return wanted


@dataclass(frozen=True, slots=True)
class _Beside:
    """``drawn`` by the way of drawing, with these ``states`` in this order; ``told`` by signals that ask for themselves; each
    with what it took."""

    question: str
    drawn: Mapping[Sampling, tuple[Samples, Usage]]
    states: Mapping[Sampling, tuple[StateSpec, ...]]
    told: Mapping[str, tuple[float, Usage]]

    def of(self, greedy: Generation, signals: Mapping[str, Signal]) -> dict[str, float]:
        """The uncertainties."""
        return {
            name: self._read(signal, greedy) if isinstance(signal, Read) else self.told[name][0]
            for name, signal in signals.items()
        }

    def _read(self, signal: Read, greedy: Generation) -> float:
        if signal.drawn is None:
            return signal.read(Continued(greedy, question=self.question))
        whole, _ = self.drawn[signal.drawn]
        states = dict(zip(self.states[signal.drawn], whole.states, strict=True))
        samples = replace(whole, states=tuple(states[spec] for spec in signal.states))
        return signal.read(Continued(greedy, samples, self.question))

    def usage_of(self, name: str, signals: Mapping[str, Signal]) -> Usage:
        signal = signals[name]
        if not isinstance(signal, Read):
            return self.told[name][1]
        return Usage() if signal.drawn is None else self.drawn[signal.drawn][1]


async def _foretold(signal: Signal, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> float:
    if isinstance(signal, Foreseen):
        return await signal.foresee(model, prompt)
    return (await signal.measure(model, prompt, decoding)).uncertainty


async def _counted(work: Awaitable[T]) -> tuple[T, Usage]:
    """A result and what it took."""
    with events.record() as seen:
        result = await work
    return result, Usage.of(seen)


def _gauge(name: str, score: float | None, usage: Usage) -> events.Gauge:
    return events.Gauge(name, score, usage.model_calls, usage.prompt_tokens, usage.generated_tokens)

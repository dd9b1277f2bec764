"""Several signals of one continuation, side by side: what they share is generated once (benchmarks/panel.py: the saving)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from gnothi import events
from gnothi.concurrency import both, gather
from gnothi.events import Usage
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, Continuing, Foreseen, Measured, Sampling, Signal
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
        scores = await found.of(model, prompt, greedy, self.signals)
        measured = {name: Measured(greedy, score) for name, (score, _) in scores.items()}
        gauges = tuple(_gauge(name, one.score, scores[name][1]) for name, one in measured.items())
        events.emit(events.Gauged(greedy.text.strip(), gauges))
        return measured

    async def _beside(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> _Beside:
        """All that is asked for beside the greedy continuation."""
        alone = {name: signal for name, signal in self.signals.items() if not isinstance(signal, Continuing)}
        wanted = self._wanted()
        drawn, told = await both(
            gather(*(_counted(one.draw(model, prompt, decoding, list(specs))) for one, specs in wanted.items())),
            gather(*(_counted(_foretold(signal, model, prompt, decoding)) for signal in alone.values())),
        )
        states = {sampling: tuple(specs) for sampling, specs in wanted.items()}
        told_by = dict(zip(alone, told, strict=True))
        return _Beside(dict(zip(wanted, drawn, strict=True)), states, told_by)

    def _wanted(self) -> dict[Sampling, dict[StateSpec, None]]:
        """The states that are to be taken of each kind of samples."""
        wanted: dict[Sampling, dict[StateSpec, None]] = {}
        for signal in self.signals.values():
            if isinstance(signal, Continuing) and signal.drawn is not None:
                wanted.setdefault(signal.drawn, {}).update(dict.fromkeys(signal.states))
        return wanted


@dataclass(frozen=True, slots=True)
class _Beside:
    """``drawn`` by the way of drawing, with these ``states`` in this order; ``told`` by signals that ask for themselves; each
    with what it took."""

    drawn: Mapping[Sampling, tuple[Samples, Usage]]
    states: Mapping[Sampling, tuple[StateSpec, ...]]
    told: Mapping[str, tuple[float, Usage]]

    async def of(
        self, model: LanguageModel, prompt: Prompt, greedy: Generation, signals: Mapping[str, Signal]
    ) -> dict[str, tuple[float, Usage]]:
        """The uncertainties, each with what it took beside the greedy continuation."""
        found = await gather(*(self._of(model, prompt, greedy, name, signal) for name, signal in signals.items()))
        return dict(zip(signals, found, strict=True))

    async def _of(
        self, model: LanguageModel, prompt: Prompt, greedy: Generation, name: str, signal: Signal
    ) -> tuple[float, Usage]:
        if not isinstance(signal, Continuing):
            return self.told[name]
        said, drawing = Continued(greedy, question=prompt.question), Usage()
        if signal.drawn is not None:
            whole, drawing = self.drawn[signal.drawn]
            states = dict(zip(self.states[signal.drawn], whole.states, strict=True))
            said = replace(said, samples=replace(whole, states=tuple(states[spec] for spec in signal.states)))
        score, asking = await _counted(signal.uncertainty(model, prompt, said))
        return score, drawing + asking


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

"""Several signals of one continuation, side by side: what they share is generated once (benchmarks/panel.py: the saving)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from gnothi import events
from gnothi.concurrency import both, gather
from gnothi.events import Usage
from gnothi.protocols import LanguageModel
from gnothi.signals.base import ContinuationSignal, Continued, Measured, PromptSignal, Sampling, Signal
from gnothi.types import Decoding, Generation, Prompt, Samples, StateSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """Measures ``signals``, by any names: those of continuations share one greedy continuation and one set of samples (for each
    way of drawing them) with every state that any of them wants; the others make requests of their own.

    Each comes to what its own ``measure`` comes to, since samples are the same whatever states are taken of them. Emits Gauged.
    """

    signals: Mapping[str, Signal]

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> dict[str, Measured]:
        """Under ``decoding`` (greedy), in the order of ``signals``."""
        greedy, beside = await both(model.generate(prompt, decoding), self._beside(model, prompt, decoding))
        scores = await beside.of(model, prompt, greedy, self.signals)
        measured = {name: Measured(greedy, score) for name, (score, _) in scores.items()}
        gauges = tuple(_gauge(name, one.score, scores[name][1]) for name, one in measured.items())
        events.emit(events.Gauged(greedy.text.strip(), gauges))
        return measured

    async def _beside(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> _Beside:
        """All requests beside the one for the greedy continuation."""
        alone = {name: signal for name, signal in self.signals.items() if not isinstance(signal, ContinuationSignal)}
        states_wanted = self._states()
        samples, scores = await both(
            gather(*(_counted(one.draw(model, prompt, decoding, list(specs))) for one, specs in states_wanted.items())),
            gather(*(_counted(_uncertainty(signal, model, prompt, decoding)) for signal in alone.values())),
        )
        states = {sampling: tuple(specs) for sampling, specs in states_wanted.items()}
        scores_of = dict(zip(alone, scores, strict=True))
        return _Beside(dict(zip(states_wanted, samples, strict=True)), states, scores_of)

    def _states(self) -> dict[Sampling, dict[StateSpec, None]]:
        """The states that are to be taken of each kind of samples."""
        states: dict[Sampling, dict[StateSpec, None]] = {}
        for signal in self.signals.values():
            if isinstance(signal, ContinuationSignal) and signal.sampling is not None:
                states.setdefault(signal.sampling, {}).update(dict.fromkeys(signal.states))
        return states


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is measured beside the greedy continuation: ``samples`` by the way of drawing, with these ``states`` in this order,
    and the ``scores`` of signals that make requests of their own; each with what it took."""

    samples: Mapping[Sampling, tuple[Samples, Usage]]
    states: Mapping[Sampling, tuple[StateSpec, ...]]
    scores: Mapping[str, tuple[float, Usage]]

    async def of(
        self, model: LanguageModel, prompt: Prompt, greedy: Generation, signals: Mapping[str, Signal]
    ) -> dict[str, tuple[float, Usage]]:
        """The uncertainties, each with what it took beside the greedy continuation."""
        scores = await gather(*(self._of(model, prompt, greedy, name, signal) for name, signal in signals.items()))
        return dict(zip(signals, scores, strict=True))

    async def _of(
        self, model: LanguageModel, prompt: Prompt, greedy: Generation, name: str, signal: Signal
    ) -> tuple[float, Usage]:
        if not isinstance(signal, ContinuationSignal):
            return self.scores[name]
        continued, drawing = Continued(greedy, question=prompt.question), Usage()
        if signal.sampling is not None:
            whole, drawing = self.samples[signal.sampling]
            states = dict(zip(self.states[signal.sampling], whole.states, strict=True))
            continued = replace(continued, samples=replace(whole, states=tuple(states[spec] for spec in signal.states)))
        score, asking = await _counted(signal.uncertainty(model, prompt, continued))
        return score, drawing + asking


async def _uncertainty(signal: Signal, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> float:
    if isinstance(signal, PromptSignal):
        return await signal.from_prompt(model, prompt)
    return (await signal.measure(model, prompt, decoding)).uncertainty


async def _counted(work: Awaitable[T]) -> tuple[T, Usage]:
    """A result and what it took."""
    with events.record() as emitted:
        result = await work
    return result, Usage.of(emitted)


def _gauge(name: str, score: float | None, usage: Usage) -> events.Gauge:
    return events.Gauge(name, score, usage.model_calls, usage.prompt_tokens, usage.generated_tokens)

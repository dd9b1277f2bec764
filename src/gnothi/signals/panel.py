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
from gnothi.types import Decoding, Prompt, StateSpec

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
        alone = {name: signal for name, signal in self.signals.items() if not isinstance(signal, Read)}
        wanted = self._wanted()
        greedy, (drawn, told) = await both(
            model.generate(prompt, decoding),
            both(
                gather(*(_counted(one.draw(model, prompt, decoding, list(specs))) for one, specs in wanted.items())),
                gather(*(_counted(_foretold(signal, model, prompt, decoding)) for signal in alone.values())),
            ),
        )
        samples = dict(zip(wanted, drawn, strict=True))
        found = dict(zip(alone, told, strict=True))
        for name, signal in self.signals.items():
            if isinstance(signal, Read):
                said, usage = Continued(greedy), Usage()
                if signal.drawn is not None:
                    whole, usage = samples[signal.drawn]
                    states = dict(zip(wanted[signal.drawn], whole.states, strict=True))
                    said = Continued(greedy, replace(whole, states=tuple(states[spec] for spec in signal.states)))
                found[name] = signal.read(said), usage
        measured = {name: Measured(greedy, found[name][0]) for name in self.signals}
        gauges = tuple(_gauge(name, one.score, found[name][1]) for name, one in measured.items())
        events.emit(events.Gauged(greedy.text.strip(), gauges))
        return measured

    def _wanted(self) -> dict[Sampling, dict[StateSpec, None]]:
        """The states that are to be taken of each kind of samples."""
        wanted: dict[Sampling, dict[StateSpec, None]] = {}
        for signal in self.signals.values():
            if isinstance(signal, Read) and signal.drawn is not None:
                wanted.setdefault(signal.drawn, {}).update(dict.fromkeys(signal.states))
        return wanted


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

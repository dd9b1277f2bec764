"""What every signal offers: one number that says how uncertain a model is when it continues a prompt; higher is less certain.

A signal obtains the greedy continuation (the draft a method goes on with) and whatever it needs beside it in one go, so that
a backend reads the prompt once. Most are of one of three kinds: ``Read`` off continuations, which several signals can share
(``panel``), ``FollowUp`` about them, or ``Foreseen`` without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from gnothi.concurrency import both
from gnothi.errors import InvalidSetting
from gnothi.protocols import LanguageModel
from gnothi.signals.stopping import KEY, Stopping
from gnothi.types import Capabilities, Decoding, Generation, Prompt, Samples, StateSpec

Scores = tuple[float | None, ...]
"""None where nothing could be measured."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The greedy continuation of a prompt and how uncertain the model was; infinity where nothing could be measured.

    ``samples``: how many were drawn, where that depended on what they said (``stopping``). ``draws``: the scores of the first
    samples of several draws, where these were wanted beside that of all."""

    greedy: Generation
    uncertainty: float
    samples: int | None = None
    draws: tuple[Scores, ...] = ()

    @property
    def score(self) -> float | None:
        """The uncertainty as events and answers carry it."""
        return said_as(self.uncertainty)


def said_as(score: float) -> float | None:
    """None instead of infinity, which JSON cannot say."""
    return None if score == float("inf") else score


class Signal(Protocol):
    """``default_threshold`` is where a gate fires unless told otherwise; None where no value is usual for any model."""

    name: ClassVar[str]
    needs: ClassVar[Capabilities]
    default_threshold: ClassVar[float | None]

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        """Continue ``prompt`` under ``decoding`` (greedy) and measure; samples share its length limit and stop strings."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How continuations are sampled for signals that compare several (SeaKR, section 4.1.3; cuts as in its authors' code).

    ``stopping``: when a gate, which needs no more than the side of its threshold, stops drawing; None: it draws all."""

    samples: int = 20
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 0.9
    stopping: Stopping | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InvalidSetting(f"setting 'signal.samples': got {self.samples}, expected at least 1.")
        if self.stopping is not None and self.samples < self.stopping.fewest:
            raise InvalidSetting(
                f"setting {KEY!r}: got a rule for {self.stopping.fewest} samples or more with signal.samples = {self.samples}. "
                "Use the calibration with the number of samples that it was made with."
            )
        if self.temperature <= 0:
            raise InvalidSetting(
                f"setting 'signal.temperature': got {self.temperature}, expected more than 0: "
                "without randomness all samples are the same and every signal that compares them says 'certain'."
            )

    def decoding(self, greedy: Decoding) -> Decoding:
        """``greedy`` with this randomness."""
        return replace(greedy, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)

    async def draw(
        self, model: LanguageModel, prompt: Prompt, greedy: Decoding, states: Sequence[StateSpec] = (), after: int = 0
    ) -> Samples:
        """Samples in place of the ``greedy`` continuation, with these hidden states; those ``after`` the first ones."""
        return await model.sample(prompt, self.samples - after, replace(self.decoding(greedy), first=after), states)


@dataclass(frozen=True, slots=True)
class Continued:
    """The greedy continuation of a prompt, and samples where some were drawn. ``found`` is for a signal that asks about samples
    to remember what it was told, since it may be asked again when more have been drawn."""

    greedy: Generation
    samples: Samples = Samples(())  # noqa: RUF009
    question: str = ""
    found: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def part(self, begin: int, end: int) -> Continued:
        """With the samples of these numbers alone."""
        samples = Samples(self.samples.generations[begin:end], tuple(rows[begin:end] for rows in self.samples.states))
        return replace(self, samples=samples)

    def filled(self, wanted: int) -> Continued:
        """With its samples repeated in turn until there are as many as ``wanted``."""
        some = np.arange(wanted) % max(len(self.samples.generations), 1)
        generations = tuple(self.samples.generations[one] for one in some)
        return replace(self, samples=Samples(generations, tuple(rows[some] for rows in self.samples.states)))

    def with_more(self, samples: Samples) -> Continued:
        """With these samples behind its own."""
        states = tuple(np.concatenate(rows) for rows in zip(self.samples.states, samples.states, strict=True))
        return replace(self, samples=Samples(self.samples.generations + samples.generations, states))


class Continuing(ABC):
    """A signal of the greedy continuation and, where it wants some ``drawn``, of samples."""

    __slots__ = ()

    @property
    def drawn(self) -> Sampling | None:
        """How samples are drawn; None for a signal that needs none."""
        return None

    @property
    def states(self) -> tuple[StateSpec, ...]:
        """The hidden states of the samples that are needed."""
        return ()

    @abstractmethod
    async def uncertainty(self, model: LanguageModel, prompt: Prompt, said: Continued) -> float:
        """Of what was ``said``. Samples were drawn as the signal asks, and have its ``states`` in their order."""

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        said = await self.said(model, prompt, decoding, self.drawn)
        return Measured(said.greedy, await self.uncertainty(model, prompt, said))

    async def said(self, model: LanguageModel, prompt: Prompt, decoding: Decoding, drawn: Sampling | None) -> Continued:
        """The greedy continuation, and the samples, ``drawn`` so."""
        if drawn is None:
            return Continued(await model.generate(prompt, decoding), question=prompt.question)
        drawing = drawn.draw(model, prompt, decoding, self.states)
        return Continued(*await both(model.generate(prompt, decoding), drawing), prompt.question)


class Read(Continuing):
    """A signal that is read off what was said, which several signals can share (``panel``)."""

    __slots__ = ()

    @abstractmethod
    def read(self, said: Continued) -> float:
        """The uncertainty."""

    async def uncertainty(self, model: LanguageModel, prompt: Prompt, said: Continued) -> float:  # noqa: ARG002
        return self.read(said)


class FollowUp(Continuing):
    """A signal that asks something about what was said."""

    __slots__ = ()

    @abstractmethod
    async def ask(self, model: LanguageModel, prompt: Prompt, said: Continued) -> float:
        """The uncertainty, by requests of its own about what was ``said``."""

    async def uncertainty(self, model: LanguageModel, prompt: Prompt, said: Continued) -> float:
        return await self.ask(model, prompt, said)


@runtime_checkable
class Foreseen(Protocol):
    """A signal that needs no continuation: it makes a request of its own, or none."""

    __slots__ = ()

    async def foresee(self, model: LanguageModel, prompt: Prompt) -> float:
        """The uncertainty about what would continue ``prompt``."""
        ...

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(*await both(model.generate(prompt, decoding), self.foresee(model, prompt)))

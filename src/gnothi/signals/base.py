"""What every signal offers: one number that says how uncertain a model is when it continues a prompt; higher is less certain.

A signal obtains the greedy continuation (the draft a method goes on with) and whatever it needs beside it in one go, so that
a backend reads the prompt once. Most are of one of three kinds: a ``ComputedSignal`` is computed from continuations, which
several signals can share (``panel``), a ``FollowUp`` makes requests about them, and a ``PromptSignal`` needs none.
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
        return finite_or_none(self.uncertainty)


def finite_or_none(score: float) -> float | None:
    """None instead of infinity, which JSON does not have."""
    return None if score == float("inf") else score


class Signal(Protocol):
    """``default_threshold`` is where a gate fires by default; None where no value is usual for any model."""

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
    """The greedy continuation of a prompt, and samples where some were drawn. A signal that makes requests about samples keeps
    the replies in ``verdicts``, since it may be measured again when more have been drawn."""

    greedy: Generation
    samples: Samples = Samples(())  # noqa: RUF009
    question: str = ""
    verdicts: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def part(self, begin: int, end: int) -> Continued:
        """With the samples of these numbers alone."""
        samples = Samples(self.samples.generations[begin:end], tuple(rows[begin:end] for rows in self.samples.states))
        return replace(self, samples=samples)

    def filled(self, count: int) -> Continued:
        """With its samples repeated in turn until there are as many as ``count``."""
        some = np.arange(count) % max(len(self.samples.generations), 1)
        generations = tuple(self.samples.generations[place] for place in some)
        return replace(self, samples=Samples(generations, tuple(rows[some] for rows in self.samples.states)))

    def with_more(self, samples: Samples) -> Continued:
        """With these samples behind its own."""
        states = tuple(np.concatenate(rows) for rows in zip(self.samples.states, samples.states, strict=True))
        return replace(self, samples=Samples(self.samples.generations + samples.generations, states))


class ContinuationSignal(ABC):
    """A signal of the greedy continuation and, where ``sampling`` says how they are drawn, of samples."""

    __slots__ = ()

    @property
    def sampling(self) -> Sampling | None:
        """How samples are drawn; None for a signal that needs none."""
        return None

    @property
    def states(self) -> tuple[StateSpec, ...]:
        """The hidden states of the samples that are needed."""
        return ()

    @abstractmethod
    async def uncertainty(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:
        """Of the continuations. The samples were drawn by ``sampling``, and have the signal's ``states`` in their order."""

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        continued = await self.continuation(model, prompt, decoding, self.sampling)
        return Measured(continued.greedy, await self.uncertainty(model, prompt, continued))

    async def continuation(
        self, model: LanguageModel, prompt: Prompt, decoding: Decoding, sampling: Sampling | None
    ) -> Continued:
        """The greedy continuation, and the samples, if any, drawn by ``sampling``."""
        if sampling is None:
            return Continued(await model.generate(prompt, decoding), question=prompt.question)
        drawing = sampling.draw(model, prompt, decoding, self.states)
        return Continued(*await both(model.generate(prompt, decoding), drawing), prompt.question)


class ComputedSignal(ContinuationSignal):
    """A signal that is computed from continuations alone, which several signals can share (``panel``)."""

    __slots__ = ()

    @abstractmethod
    def compute(self, continued: Continued) -> float:
        """The uncertainty."""

    async def uncertainty(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:  # noqa: ARG002
        return self.compute(continued)


class FollowUp(ContinuationSignal):
    """A signal that makes requests about the continuations."""

    __slots__ = ()

    @abstractmethod
    async def ask(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:
        """The uncertainty, by requests of its own about the continuations."""

    async def uncertainty(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:
        return await self.ask(model, prompt, continued)


@runtime_checkable
class PromptSignal(Protocol):
    """A signal of the prompt alone: it makes a request of its own, or none."""

    __slots__ = ()

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:
        """The uncertainty about what would continue ``prompt``."""
        ...

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(*await both(model.generate(prompt, decoding), self.from_prompt(model, prompt)))

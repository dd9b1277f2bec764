"""What every signal offers: one number that says how uncertain a model is when it continues a prompt; higher is less certain.

A signal obtains the greedy continuation (the draft a method goes on with) and whatever it needs beside it in one go, so that
a backend reads the prompt once. Most are of one of three kinds: ``Read`` off continuations, which several signals can share
(``panel``), ``Asked`` about them, or ``Foreseen`` without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

from gnothi.concurrency import both
from gnothi.errors import InvalidSetting
from gnothi.protocols import LanguageModel
from gnothi.types import Capabilities, Decoding, Generation, Prompt, Samples, StateSpec


@dataclass(frozen=True, slots=True)
class Measured:
    """The greedy continuation of a prompt and how uncertain the model was; infinity where nothing could be measured."""

    greedy: Generation
    uncertainty: float

    @property
    def score(self) -> float | None:
        """The uncertainty as events and answers carry it: None instead of infinity, which JSON cannot say."""
        return None if self.uncertainty == float("inf") else self.uncertainty


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
    """How continuations are sampled for signals that compare several (SeaKR, section 4.1.3; cuts as in its authors' code)."""

    samples: int = 20
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 0.9

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InvalidSetting(f"setting 'signal.samples': got {self.samples}, expected at least 1.")
        if self.temperature <= 0:
            raise InvalidSetting(
                f"setting 'signal.temperature': got {self.temperature}, expected more than 0: "
                "without randomness all samples are the same and every signal that compares them says 'certain'."
            )

    def decoding(self, greedy: Decoding) -> Decoding:
        """``greedy`` with this randomness."""
        return replace(greedy, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)

    async def draw(self, model: LanguageModel, prompt: Prompt, greedy: Decoding, states: Sequence[StateSpec] = ()) -> Samples:
        """Samples in place of the ``greedy`` continuation, with these hidden states."""
        return await model.sample(prompt, self.samples, self.decoding(greedy), states)


@dataclass(frozen=True, slots=True)
class Continued:
    """The greedy continuation of a prompt, and samples where some were drawn."""

    greedy: Generation
    samples: Samples = Samples(())  # noqa: RUF009
    question: str = ""


class Read(ABC):
    """A signal that is read off the greedy continuation and, where it wants some ``drawn``, off samples."""

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
    def read(self, said: Continued) -> float:
        """The uncertainty. Samples were drawn as the signal asks, and have its ``states`` in their order."""

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        said = await _continued(model, prompt, decoding, self.drawn, self.states)
        return Measured(said.greedy, self.read(said))


class Asked(ABC):
    """A signal that asks something about the greedy continuation, or about samples where it wants some ``drawn``."""

    __slots__ = ()

    @property
    def drawn(self) -> Sampling | None:
        """How samples are drawn; None for a signal that needs none."""
        return None

    @abstractmethod
    async def ask(self, model: LanguageModel, prompt: Prompt, said: Continued) -> float:
        """The uncertainty, by requests of its own about what was ``said``."""

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        said = await _continued(model, prompt, decoding, self.drawn)
        return Measured(said.greedy, await self.ask(model, prompt, said))


async def _continued(
    model: LanguageModel, prompt: Prompt, decoding: Decoding, drawn: Sampling | None, states: Sequence[StateSpec] = ()
) -> Continued:
    if drawn is None:
        return Continued(await model.generate(prompt, decoding), question=prompt.question)
    drawing = drawn.draw(model, prompt, decoding, states)
    return Continued(*await both(model.generate(prompt, decoding), drawing), prompt.question)


@runtime_checkable
class Foreseen(Protocol):
    """A signal that needs no continuation: it makes a request of its own, or none."""

    __slots__ = ()

    async def foresee(self, model: LanguageModel, prompt: Prompt) -> float:
        """The uncertainty about what would continue ``prompt``."""
        ...

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        return Measured(*await both(model.generate(prompt, decoding), self.foresee(model, prompt)))

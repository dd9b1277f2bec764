"""From a synchronous backend that answers batches to an asynchronous model whose calls may run concurrently."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from gnothi.concurrency import Batcher, Inbox, Work, in_batches
from gnothi.errors import InvalidSetting
from gnothi.models.sampling import check, check_states
from gnothi.types import (
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Profile,
    Prompt,
    PromptStates,
    Samples,
    StateSpec,
)


@dataclass(frozen=True, slots=True)
class Continue:
    """n continuations of a prompt, with the hidden states of each that ``hidden`` names. Answered by Samples."""

    prompt: Prompt
    n: int
    decoding: Decoding
    hidden: tuple[StateSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Hidden states at the end of a prompt, all of the position ``predicting``. Answered by PromptStates."""

    prompt: Prompt
    hidden: tuple[StateSpec, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Log-probabilities of given continuations. Answered by a tuple of ContinuationScore, in order."""

    prompt: Prompt
    continuations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attend:
    """Where a continuation of a prompt looks. Answered by Attended."""

    prompt: Prompt
    continuation: str


Request = Continue | Look | Score | Attend
Result = Samples | PromptStates | tuple[ContinuationScore, ...] | Attended


class Backend(Protocol):
    """Answers batches and knows nothing of asyncio. It is called from one thread at a time."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """What a run should record about how this backend works: device, precision, which paths it takes."""
        ...

    def run(self, batch: Sequence[Request]) -> Sequence[Result | Exception]:
        """One result or exception per request, in order. A request that cannot be served fails alone."""
        ...

    def close(self) -> None: ...


class ContinuousBackend(ABC):
    """A backend that admits new requests while it works on others."""

    @abstractmethod
    def serve(self, inbox: Inbox[Request, Result]) -> None:
        """Take jobs from the inbox, again and again, finish each, and return when none is left."""

    def run(self, batch: Sequence[Request]) -> list[Result | Exception]:
        inbox: Inbox[Request, Result] = Inbox()
        jobs = [inbox.put(request) for request in batch]
        self.serve(inbox)
        inbox.fail(RuntimeError("this request was left without a result"))
        failures = [job.future.exception() for job in jobs]
        return [
            failure if isinstance(failure, Exception) else job.future.result()
            for job, failure in zip(jobs, failures, strict=True)
        ]


class Batched:
    """A LanguageModel over a Backend: concurrent calls become batches on one worker thread (one per device)."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._batcher: Batcher[Request, Result] = Batcher(self._work, name=backend.name)
        self._closed = False

    @classmethod
    def opened(cls, make: Callable[[], Backend], name: str) -> Batched:
        """Over the backend that ``make`` returns, which is made on the thread that will run it.

        Two threads of a process that both compute with OpenMP get a team of threads each; once there are more of these than
        processors, they sleep between operations, and a CPU decodes a third slower.
        """
        batched = cls.__new__(cls)
        batched._batcher = Batcher(batched._work, name=name)
        batched._closed = False
        batched._backend = batched._batcher.begin(make)
        return batched

    def _work(self, inbox: Inbox[Request, Result]) -> None:
        backend = self._backend
        work: Work[Request, Result] = backend.serve if isinstance(backend, ContinuousBackend) else in_batches(backend.run)
        work(inbox)

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def capabilities(self) -> Capabilities:
        return self._backend.capabilities

    @property
    def profile(self) -> Profile:
        return self._backend.profile

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._backend.metadata

    @property
    def statistics(self) -> Mapping[str, int]:
        """What the backend counted so far, empty where it counts nothing."""
        return getattr(self._backend, "statistics", {})

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return (await self.sample(prompt, 1, decoding)).generations[0]

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        if n < 1:
            raise InvalidSetting(f"cannot sample: got n = {n}, expected at least 1.")
        check(decoding)
        return cast(Samples, await self._batcher.submit(Continue(prompt, n, decoding, tuple(hidden))))

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        check_states(hidden)
        return cast(PromptStates, await self._batcher.submit(Look(prompt, tuple(hidden))))

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        result = await self._batcher.submit(Score(prompt, tuple(continuations)))
        return cast(tuple[ContinuationScore, ...], result)

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        return cast(Attended, await self._batcher.submit(Attend(prompt, continuation)))

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await self._batcher.aclose()
            self._backend.close()

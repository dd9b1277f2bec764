"""Wrappers around a language model: cross-cutting concerns, so that no method and no backend has a line for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache

from gnothi.events import ModelCall, emit
from gnothi.protocols import LanguageModel
from gnothi.seeding import derive
from gnothi.types import (
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Prompt,
    PromptStates,
    Samples,
    StateSpec,
    Task,
)


class Wrapper:
    """Passes everything on. ``metadata`` and ``statistics`` are those of the wrapped model, empty where it has none."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    @property
    def thresholds(self) -> Mapping[str, float]:
        return self._model.thresholds

    @property
    def metadata(self) -> Mapping[str, str]:
        return getattr(self._model, "metadata", {})

    @property
    def statistics(self) -> Mapping[str, int]:
        return getattr(self._model, "statistics", {})

    @property
    def tasks(self) -> frozenset[str] | None:
        """Names of the tasks a model with a format of its own was taught; None: any that an instruction explains."""
        return getattr(self._model, "tasks", None)

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return await self._model.generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        return await self._model.sample(prompt, n, decoding, hidden)

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        return await self._model.states(prompt, hidden)

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        return await self._model.score(prompt, continuations)

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        return await self._model.attend(prompt, continuation)

    async def aclose(self) -> None:
        await self._model.aclose()


class Calibrated(Wrapper):
    """Carries the thresholds that were calibrated on the model, by signal name, and the tasks it was taught."""

    def __init__(self, model: LanguageModel, thresholds: Mapping[str, float], tasks: frozenset[str] | None = None) -> None:
        super().__init__(model)
        self._thresholds = dict(thresholds)
        self._tasks = tasks

    @property
    def tasks(self) -> frozenset[str] | None:
        return self._tasks

    @property
    def thresholds(self) -> Mapping[str, float]:
        return self._thresholds


class Seeded(Wrapper):
    """Fills ``Decoding.seed`` where chance is involved and none was given: from run seed, question and request,
    so that the same request of the same question draws the same samples whatever else runs beside it."""

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return await self._model.generate(prompt, _seeded(decoding, "generate", prompt))

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        # n and the states are no part of the request's identity: the first rows of more samples are those of fewer.
        return await self._model.sample(prompt, n, _seeded(decoding, "sample", prompt), hidden)


def _seeded(decoding: Decoding, operation: str, prompt: Prompt) -> Decoding:
    if decoding.temperature == 0 or decoding.seed is not None:
        return decoding
    asked = (prompt.question, prompt.passages, prompt.choices, prompt.answer_so_far)
    return replace(decoding, seed=derive(operation, _described(prompt.task), asked, decoding))


@lru_cache(maxsize=64)
def _described(task: Task) -> str:
    """A task is the same for thousands of requests, and long."""
    return repr(task)


_hits: ContextVar[list[bool] | None] = ContextVar("gnothi_cache_hits", default=None)


def note_hit() -> None:
    """Tell the ``Traced`` further out that the present call is answered from a cache."""
    noted = _hits.get()
    if noted is not None:
        noted.append(True)


@contextmanager
def _noting() -> Iterator[list[bool]]:
    noted: list[bool] = []
    token = _hits.set(noted)
    try:
        yield noted
    finally:
        _hits.reset(token)


class Traced(Wrapper):
    """Emits ``events.ModelCall`` for every call that succeeds; a failed one raises and leaves no event.

    The prompt counts once per request, however many samples are drawn from it.
    """

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        started = time.perf_counter()
        with _noting() as hits:
            generation = await self._model.generate(prompt, decoding)
        self._emit("generate", prompt, (generation,), started, bool(hits))
        return generation

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        started = time.perf_counter()
        with _noting() as hits:
            samples = await self._model.sample(prompt, n, decoding, hidden)
        self._emit("sample", prompt, samples.generations, started, bool(hits))
        return samples

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        started = time.perf_counter()
        with _noting() as hits:
            found = await self._model.states(prompt, hidden)
        seconds = time.perf_counter() - started
        emit(ModelCall(self.name, "states", prompt.task.name, found.prompt_tokens, 0, seconds, cached=bool(hits)))
        return found

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        started = time.perf_counter()
        with _noting() as hits:
            scores = await self._model.score(prompt, continuations)
        scored = sum(len(score.logprobs) for score in scores)
        seconds = time.perf_counter() - started
        prompt_tokens = max((score.prompt_tokens for score in scores), default=0)
        texts = tuple(score.text for score in scores)
        emit(ModelCall(self.name, "score", prompt.task.name, prompt_tokens + scored, 0, seconds, texts, bool(hits)))
        return scores

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        started = time.perf_counter()
        attended = await self._model.attend(prompt, continuation)
        seconds = time.perf_counter() - started
        emit(ModelCall(self.name, "attend", prompt.task.name, len(attended.tokens), 0, seconds, (continuation,)))
        return attended

    def _emit(self, operation: str, prompt: Prompt, generations: Sequence[Generation], started: float, cached: bool) -> None:
        emit(
            ModelCall(
                model=self.name,
                operation=operation,
                task=prompt.task.name,
                prompt_tokens=max(generation.prompt_tokens for generation in generations),
                generated_tokens=sum(generation.generated_tokens for generation in generations),
                seconds=time.perf_counter() - started,
                texts=tuple(generation.text for generation in generations),
                cached=cached,
            )
        )

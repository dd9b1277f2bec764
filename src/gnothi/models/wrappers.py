"""Wrappers around a language model: cross-cutting concerns, so that no method and no backend has a line for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gnothi.events import ModelCall, emit
from gnothi.own_code import running
from gnothi.prompts.sets import shipped, tasks_of
from gnothi.protocols import LanguageModel
from gnothi.seeding import derive
from gnothi.types import (
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Passage,
    Profile,
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
    def profile(self) -> Profile:
        return self._model.profile

    @property
    def metadata(self) -> Mapping[str, str]:
        return getattr(self._model, "metadata", {})

    @property
    def statistics(self) -> Mapping[str, int]:
        return getattr(self._model, "statistics", {})

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return await self._model.generate(self._rewritten(prompt), decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        return await self._model.sample(self._rewritten(prompt), n, decoding, hidden)

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        return await self._model.states(self._rewritten(prompt), hidden)

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        return await self._model.score(self._rewritten(prompt), continuations)

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        return await self._model.attend(self._rewritten(prompt), continuation)

    def _rewritten(self, prompt: Prompt) -> Prompt:
        """The prompt that the wrapped model gets."""
        return prompt

    async def aclose(self) -> None:
        await self._model.aclose()


class Calibrated(Wrapper):
    """Carries the thresholds that were calibrated on the model, by signal name, and the tasks it was taught."""

    def __init__(self, model: LanguageModel, thresholds: Mapping[str, float], tasks: frozenset[str] | None = None) -> None:
        super().__init__(model)
        self._profile = replace(model.profile, thresholds=dict(thresholds), tasks=tasks)

    @property
    def profile(self) -> Profile:
        return self._profile


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
    request = (prompt.question, prompt.passages, prompt.choices, prompt.answer_so_far)
    return replace(decoding, seed=derive(operation, _described(prompt.task), request, decoding))


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


class Traced(Wrapper):
    """Emits ``events.ModelCall`` for every call that succeeds; a failed one raises and leaves no event.

    The prompt counts once per request, however many samples are drawn from it.
    """

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        with self._tracing("generate", prompt) as note:
            generation = await self._model.generate(prompt, decoding)
            note(**_event_fields([generation], decoding))
        return generation

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        with self._tracing("sample", prompt) as note:
            samples = await self._model.sample(prompt, n, decoding, hidden)
            note(**_event_fields(samples.generations, decoding))
        return samples

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        with self._tracing("states", prompt) as note:
            states = await self._model.states(prompt, hidden)
            note(prompt_tokens=states.prompt_tokens)
        return states

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        with self._tracing("score", prompt) as note:
            scores = await self._model.score(prompt, continuations)
            scored = sum(len(score.logprobs) for score in scores)
            read = max((one.prompt_tokens for one in scores), default=0) + scored
            note(prompt_tokens=read, texts=tuple(one.text for one in scores))
        return scores

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        with self._tracing("attend", prompt) as note:
            attended = await self._model.attend(prompt, continuation)
            note(prompt_tokens=len(attended.tokens), texts=(continuation,))
        return attended

    @contextmanager
    def _tracing(self, operation: str, prompt: Prompt) -> Iterator[Callable[..., None]]:
        """Inside, ``note`` the fields of the event that come from the call's result, once it has succeeded."""
        started, hits = time.perf_counter(), list[bool]()

        def note(prompt_tokens: int, generated_tokens: int = 0, **rest: Any) -> None:
            seconds, tokens = time.perf_counter() - started, (prompt_tokens, generated_tokens)
            rest |= {"cached": bool(hits), "passages": prompt.passages}
            emit(ModelCall(self.name, operation, prompt.task.name, *tokens, seconds, **rest))

        token = _hits.set(hits)
        try:
            with running(f"model {self.name!r}"):
                yield note
        finally:
            _hits.reset(token)


def _event_fields(replies: Sequence[Generation], decoding: Decoding) -> dict[str, Any]:
    """The fields of an event about replies to one prompt."""
    return {
        "prompt_tokens": max(one.prompt_tokens for one in replies),
        "generated_tokens": sum(one.generated_tokens for one in replies),
        "texts": tuple(one.text for one in replies),
        # Of one token nobody expects an end.
        "cut": sum(one.finish == "length" for one in replies) if decoding.max_tokens > 1 else 0,
        "thoughts": tuple(one.thought for one in replies if one.thought_tokens),
        "thought_tokens": sum(one.thought_tokens for one in replies),
        "thoughts_cut": sum(one.thought_cut for one in replies),
    }


def demonstrated(spec: str) -> dict[Task, Task]:
    """What stands for which default task in the set ``spec``. Raises InvalidInput."""
    own = tasks_of(spec)
    return {task: own[key] for key, task in shipped().items() if own[key] != task}


class Untitled(Wrapper):
    """Shows passages, those of demonstrations too, without their titles."""

    def _rewritten(self, prompt: Prompt) -> Prompt:
        return untitled(prompt)


def untitled(prompt: Prompt) -> Prompt:
    """The prompt, its passages and those of its demonstrations without titles."""
    return replace(prompt, task=_untitled(prompt.task), passages=_texts(prompt.passages))


@lru_cache(maxsize=64)
def _untitled(task: Task) -> Task:
    demonstrations = tuple(replace(one, passages=_texts(one.passages)) for one in task.demonstrations)
    return task if demonstrations == task.demonstrations else replace(task, demonstrations=demonstrations)


def _texts(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    return tuple(replace(one, title="") for one in passages)


class Demonstrated(Wrapper):
    """Shows other tasks ``instead`` of some. A task whose demonstrations were chosen for the question, from a reference of
    labelled ones say, keeps them."""

    def __init__(self, model: LanguageModel, instead: Mapping[Task, Task]) -> None:
        super().__init__(model)
        self._instead = instead

    def _rewritten(self, prompt: Prompt) -> Prompt:
        other = self._instead.get(prompt.task)
        return prompt if other is None else replace(prompt, task=other)

"""Bookkeeping of the samples that run, kept as arrays so that a step costs little Python per sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import Job
from gnothi.models.batched import Continue, Request, Result
from gnothi.models.engine.states import StateHook
from gnothi.models.engine.text import StopWatch
from gnothi.models.sampling import BLOCK, uniforms
from gnothi.types import Generation, Samples

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(slots=True, eq=False)
class Task:
    """A Continue request on its way: what it asks, and what its samples have come to so far.

    ``hooks`` are the places to read the states from that the request names; ``states`` holds, for each of them, those of the
    samples. ``texts`` are the generations by their tokens: most samples of a model that is sure say the same. ``outgrown`` are
    samples that began as short texts and became long ones, for which a model has other frequencies: they begin again as such.
    It came when the engine had done ``came`` steps.
    """

    job: Job[Request, Result]
    request: Continue
    prompt: tuple[int, ...]
    hooks: tuple[StateHook, ...]
    watch: StopWatch | None
    came: int = 0
    generations: dict[int, Generation] = field(default_factory=dict)
    states: tuple[dict[int, NDArray[np.float32]], ...] = ()
    texts: dict[tuple[bool, bytes], Generation] = field(default_factory=dict)
    outgrown: set[int] = field(default_factory=set)
    _uniforms: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = tuple({} for _ in self.hooks)

    def uniforms(self, block: int) -> NDArray[np.float64]:
        """Random numbers for the tokens of a block, (n, BLOCK)."""
        if block not in self._uniforms:
            decoding = self.request.decoding
            drawn = uniforms(decoding.seed or 0, decoding.first + self.request.n, block)
            self._uniforms = {block: drawn[decoding.first :]}
        return self._uniforms[block]

    def finish(self) -> None:
        """Hand over the result when every sample is there."""
        n = self.request.n
        if len(self.generations) == n and all(len(by_sample) == n for by_sample in self.states):
            states = tuple(np.stack([by_sample[i] for i in range(n)]) for by_sample in self.states)
            self.job.finish(Samples(tuple(self.generations[i] for i in range(n)), states))


class Rows:
    """Struct of arrays, one entry per running sample.

    ``branch`` is the row of the decode path on which a sample stands: samples of one prompt that have said the same so far
    share one. ``ids``, ``logprobs`` and ``logsumexps`` are (samples, tokens); ``count`` tokens of each are filled. ``uniform``
    (samples, BLOCK) chooses the tokens of the present block. ``stop`` numbers the stop strings, 0 where there are none.
    ``feed`` is the token the next step feeds; a sample that is ``closing`` (1) is done but for the states at that token.
    """

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._running: frozenset[Task] | None = None
        self.tails = np.zeros(0, np.object_)
        self.branch, self.sample, self.count, self.limit, self.feed, self.closing, self.stop, self.top_k = (
            np.zeros(0, np.int64) for _ in range(8)
        )
        self._stops: dict[tuple[str, ...], int] = {(): 0}
        self.temperature, self.top_p = np.zeros(0), np.zeros(0)
        self.uniform: NDArray[np.float64] = np.zeros((0, BLOCK))
        self.ids: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self.logprobs: NDArray[np.float64] = np.zeros((0, 0))
        self.logsumexps: NDArray[np.float64] = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def running(self) -> frozenset[Task]:
        """The tasks of which samples run."""
        if self._running is None:
            self._running = frozenset(self.tasks)
        return self._running

    def append(self, members: Sequence[tuple[Task, Sequence[int]]], branches: Sequence[int]) -> None:
        """Add samples of the given numbers for each task, those of ``members[i]`` on branch ``branches[i]``."""
        counts = [len(samples) for _, samples in members]
        added = sum(counts)
        self._running = None
        decodings = [task.request.decoding for task, _ in members]
        for task, samples in members:
            self.tasks += [task] * len(samples)
        drawn = [
            task.uniforms(0)[samples] if decoding.temperature > 0 else np.zeros((len(samples), BLOCK))
            for (task, samples), decoding in zip(members, decodings, strict=True)
        ]
        nothing = np.zeros(added, np.int64)
        columns: dict[str, NDArray[Any]] = {
            "tails": np.full(added, "", np.object_),
            "branch": np.repeat(branches, counts),
            "sample": np.concatenate([samples for _, samples in members]),
            **dict.fromkeys(("count", "feed", "closing"), nothing),
            "limit": np.repeat([one.max_tokens for one in decodings], counts),
            "stop": np.repeat([self._stops.setdefault(one.stop, len(self._stops)) for one in decodings], counts),
            "temperature": np.repeat([float(one.temperature) for one in decodings], counts),
            "top_k": np.repeat([one.top_k for one in decodings], counts),
            "top_p": np.repeat([float(one.top_p) for one in decodings], counts),
            "uniform": np.concatenate(drawn),
        }
        for name, column in columns.items():
            setattr(self, name, np.concatenate([getattr(self, name), column]))
        self._grow(added, self.ids.shape[1])

    def choices(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The random number for the next token of each of these samples."""
        at = self.count[samples] % BLOCK
        for sample in samples[(at == 0) & (self.count[samples] > 0) & (self.temperature[samples] > 0)].tolist():
            self.uniform[sample] = self.tasks[sample].uniforms(int(self.count[sample]) // BLOCK)[self.sample[sample]]
        return self.uniform[samples, at]

    def take(
        self,
        samples: NDArray[np.int64],
        ids: NDArray[np.int64],
        logprobs: NDArray[np.float64],
        logsumexps: NDArray[np.float64],
    ) -> None:
        """Append one token to each of these samples and feed it next."""
        at = self.count[samples]
        if len(at) and int(at.max()) >= self.ids.shape[1]:
            self._grow(0, int(at.max()) + BLOCK)
        self.ids[samples, at] = ids
        self.logprobs[samples, at] = logprobs
        self.logsumexps[samples, at] = logsumexps
        self.feed[samples] = ids
        self.count[samples] += 1

    def keep(self, samples: NDArray[np.int64]) -> None:
        """Go on with these samples only, in this order."""
        self._running = None
        self.tasks = [self.tasks[sample] for sample in samples.tolist()]
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[samples])

    def close(self, samples: NDArray[np.int64], feed: int) -> None:
        """These samples are done but for the states at the token ``feed``, which is fed next."""
        self.feed[samples] = feed
        self.closing[samples] = 1

    def _grow(self, rows: int, width: int) -> None:
        self.ids = _grown(self.ids, rows, width)
        self.logprobs = _grown(self.logprobs, rows, width)
        self.logsumexps = _grown(self.logsumexps, rows, width)


def _grown(array: NDArray[_Number], rows: int, width: int) -> NDArray[_Number]:
    result = np.zeros((len(array) + rows, width), array.dtype)
    result[: len(array), : array.shape[1]] = array
    return result

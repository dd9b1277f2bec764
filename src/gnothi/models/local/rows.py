"""Bookkeeping of the continuations that run: one row each, kept as arrays so that a step costs little Python per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import Job
from gnothi.models.batched import Continue, Request, Result
from gnothi.models.local.states import Tap
from gnothi.models.local.text import StopWatch
from gnothi.models.sampling import uniforms
from gnothi.types import Generation, Samples

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(slots=True, eq=False)
class Task:
    """A Continue request on its way: what it asks, and what its samples have come to so far."""

    job: Job[Request, Result]
    request: Continue
    prompt: tuple[int, ...]
    tap: Tap | None
    watch: StopWatch | None
    generations: dict[int, Generation] = field(default_factory=dict)
    states: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def finish(self) -> None:
        """Hand over the result when every sample is there."""
        n = self.request.n
        if len(self.generations) == n and (self.tap is None or len(self.states) == n):
            states = np.stack([self.states[i] for i in range(n)]) if self.tap is not None else None
            self.job.finish(Samples(tuple(self.generations[i] for i in range(n)), states))


class Rows:
    """Struct of arrays, one entry per running row, in the order of the decode path's rows.

    ``ids``, ``logprobs``, ``logsumexps`` and ``uniform`` are (rows, longest limit); ``count`` tokens of each are filled.
    ``feed`` is the token the next step feeds; a ``closing`` row is done but for the state at that token.
    """

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.tails: list[str] = []
        self.sample = np.zeros(0, np.int64)
        self.count = np.zeros(0, np.int64)
        self.limit = np.zeros(0, np.int64)
        self.feed = np.zeros(0, np.int64)
        self.closing = np.zeros(0, np.bool_)
        self.watched = np.zeros(0, np.bool_)
        self.temperature = np.zeros(0)
        self.top_k = np.zeros(0, np.int64)
        self.top_p = np.zeros(0)
        self.ids: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self.logprobs: NDArray[np.float64] = np.zeros((0, 0))
        self.logsumexps: NDArray[np.float64] = np.zeros((0, 0))
        self.uniform: NDArray[np.float64] = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.tasks)

    def append(self, members: Sequence[tuple[Task, int]]) -> None:
        """Add rows for (task, sample number) pairs."""
        decodings = [task.request.decoding for task, _ in members]
        count = len(members)
        longest = max([self.ids.shape[1], *(decoding.max_tokens for decoding in decodings)])
        self.tasks += [task for task, _ in members]
        self.tails += [""] * count
        self.sample = np.concatenate([self.sample, [sample for _, sample in members]])
        self.count = np.concatenate([self.count, np.zeros(count, np.int64)])
        self.limit = np.concatenate([self.limit, [decoding.max_tokens for decoding in decodings]])
        self.feed = np.concatenate([self.feed, np.zeros(count, np.int64)])
        self.closing = np.concatenate([self.closing, np.zeros(count, np.bool_)])
        self.watched = np.concatenate([self.watched, [task.watch is not None for task, _ in members]])
        self.temperature = np.concatenate([self.temperature, [float(decoding.temperature) for decoding in decodings]])
        self.top_k = np.concatenate([self.top_k, [decoding.top_k for decoding in decodings]])
        self.top_p = np.concatenate([self.top_p, [float(decoding.top_p) for decoding in decodings]])
        self.ids = _grown(self.ids, count, longest)
        self.logprobs = _grown(self.logprobs, count, longest)
        self.logsumexps = _grown(self.logsumexps, count, longest)
        self.uniform = _grown(self.uniform, count, longest)
        for row, ((_, sample), decoding) in enumerate(zip(members, decodings, strict=True), start=len(self) - count):
            if decoding.temperature > 0:
                self.uniform[row, : decoding.max_tokens] = uniforms(decoding.seed or 0, sample, decoding.max_tokens)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Go on with these rows only, in this order."""
        self.tasks = [self.tasks[row] for row in rows]
        self.tails = [self.tails[row] for row in rows]
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[rows])


def _grown(array: NDArray[_Number], rows: int, width: int) -> NDArray[_Number]:
    result = np.zeros((len(array) + rows, width), array.dtype)
    result[: len(array), : array.shape[1]] = array
    return result

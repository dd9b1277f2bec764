"""The decode loop: rows of many requests advance together, join when there is room and leave when they are done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.errors import ModelUnavailable
from gnothi.models.local.choice import choose
from gnothi.models.local.passes import Captured, Network
from gnothi.models.local.rows import Rows, Task
from gnothi.models.local.states import Tap
from gnothi.models.local.text import CONTEXT_TOKENS, Detokenizer
from gnothi.types import Finish, Generation, Token


class Reading(Protocol):
    """Prompts that were read, for looking at what may follow them. ``logits`` (prompts, vocabulary) after each."""

    logits: Tensor

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]: ...

    def close(self) -> None: ...


class Path(Protocol):
    """How prompts are read and rows over them advanced. Rows keep the order of admission."""

    @property
    def name(self) -> str: ...

    @property
    def shares_prompts(self) -> bool:
        """Whether a prompt's keys and values are held once, however many rows it has."""
        ...

    @property
    def open(self) -> bool:
        """Whether rows can join now."""
        ...

    @property
    def budget(self) -> int:
        """Bytes that may be held of what no row reads."""
        ...

    @property
    def reused_tokens(self) -> int:
        """Tokens of prompts that did not have to be read, so far."""
        ...

    @property
    def held_tokens(self) -> int:
        """Tokens of prompts whose keys and values are held for the running rows."""
        ...

    def new_tokens(self, prompt: tuple[int, ...]) -> int:
        """How many tokens would have to be read to admit a prompt."""
        ...

    def admit(self, prompts: Sequence[tuple[int, ...]], counts: Sequence[int]) -> tuple[Tensor, Captured]: ...

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]: ...

    def keep(self, rows: Tensor) -> None: ...

    def clear(self) -> None:
        """End all rows."""
        ...

    def forget(self) -> None:
        """Give back the memory of what no row reads."""
        ...

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        """Prompts without rows, to look at what may follow them."""
        ...


@dataclass(slots=True)
class Limits:
    """``rows`` run at once, ``tokens`` of keys and values are held at once, ``prefill`` tokens are read in one pass."""

    rows: int
    tokens: int
    prefill: int


class Engine:
    """``eos`` are the ids that end a continuation, the first one is what ``fed_eos`` feeds."""

    def __init__(self, network: Network, path: Path, detokenizer: Detokenizer, eos: Sequence[int], limits: Limits) -> None:
        self._network = network
        self._path = path
        self._detokenizer = detokenizer
        self._eos = tuple(eos)
        self.limits = limits
        self._rows = Rows()
        self._waiting: deque[tuple[Task, list[int]]] = deque()
        self.steps = 0
        self.fed = 0

    @property
    def path(self) -> Path:
        return self._path

    @property
    def busy(self) -> bool:
        return bool(self._waiting or len(self._rows))

    def submit(self, task: Task) -> None:
        self._waiting.append((task, list(range(task.request.n))))

    def advance(self) -> None:
        """Admit what there is room for, then decode one token per row. Running out of memory halves the batch."""
        members: list[tuple[Task, int]] = []
        try:
            self._drop_settled()
            while members := self._next_members():
                self._admit(members)
            if len(self._rows):
                self._step()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            self._halve([*members, *zip(self._rows.tasks, self._rows.sample.tolist(), strict=True)])

    def clear(self) -> None:
        """Forget everything that runs or waits."""
        self._waiting.clear()
        self._rows = Rows()
        self._path.clear()

    # --- admission -------------------------------------------------------------------------------------------------

    def _next_members(self) -> list[tuple[Task, int]]:
        """Rows to admit in one prefill, those of one prompt together; empty when nothing waits or there is no room."""
        if not self._waiting or not self._path.open or len(self._rows) >= self.limits.rows:
            return []
        shares = self._path.shares_prompts
        held = self._path.held_tokens
        limit = int(self._rows.limit.max(initial=0))
        count, reading = len(self._rows), 0
        members: dict[tuple[int, ...], list[tuple[Task, int]]] = {}
        while self._waiting and count < self.limits.rows:
            task, samples = self._waiting[0]
            new = self._path.new_tokens(task.prompt) if task.prompt not in members else 0
            taken = min(self.limits.rows - count, len(samples))
            more = new if shares else len(task.prompt) * taken
            limit = max(limit, task.request.decoding.max_tokens)
            # Rows' buffers are as long as the longest row may get. Whoever comes first is admitted whatever the memory.
            if count and held + more + (count + taken) * limit > self.limits.tokens:
                break
            if members and new and reading + new > self.limits.prefill:
                break
            members.setdefault(task.prompt, []).extend((task, sample) for sample in samples[:taken])
            count, held, reading = count + taken, held + more, reading + new
            del samples[:taken]
            if not samples:
                self._waiting.popleft()
        return [member for group in members.values() for member in group]

    def _admit(self, members: list[tuple[Task, int]]) -> None:
        counts: dict[tuple[int, ...], int] = {}
        for task, _ in members:
            counts[task.prompt] = counts.get(task.prompt, 0) + 1
        self._network.wanted = self._taps([*self._rows.tasks, *(task for task, _ in members)])
        logits, states = self._path.admit(list(counts), list(counts.values()))
        first = len(self._rows)
        self._rows.append(members)
        self._take(first, logits, states)

    def _taps(self, tasks: Iterable[Task]) -> frozenset[Tap]:
        return frozenset(task.tap for task in set(tasks) if task.tap is not None)

    def _halve(self, members: list[tuple[Task, int]]) -> None:
        """Start every running row again, half as many at a time. Draws depend on seeds alone, so results stay the same."""
        self._rows = Rows()
        self._path.clear()
        self._path.forget()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        again: dict[Task, set[int]] = {}
        for task, sample in members:
            again.setdefault(task, set()).add(sample)
        count = sum(map(len, again.values()))
        if count == 1:
            for task in again:
                task.job.finish(does_not_fit("one continuation", len(task.prompt)))
            return
        self.limits.rows = max(1, count // 2)
        self._waiting.extendleft((task, sorted(samples)) for task, samples in reversed(again.items()))

    def _drop_settled(self) -> None:
        gone = {task for task in set(self._rows.tasks) if task.job.settled}
        if gone:
            done = np.array([row for row, task in enumerate(self._rows.tasks) if task in gone], np.int64)
            self._keep(_closed_up(len(self._rows), done))
        if any(task.job.settled for task, _ in self._waiting):
            self._waiting = deque((task, samples) for task, samples in self._waiting if not task.job.settled)

    # --- decoding --------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        self._network.wanted = self._taps(self._rows.tasks)
        logits, states = self._path.step(torch.from_numpy(self._rows.feed).to(self._network.device))
        self.steps += 1
        self.fed += len(self._rows)
        self._take(0, logits, states)

    def _take(self, first: int, logits: Tensor, states: Captured) -> None:
        """Choose the next token of the rows from ``first`` on, whose logits and states these are."""
        rows = self._rows
        span = np.arange(first, len(rows))
        done = span[rows.closing[first:]]
        self._record_states(done, first, states)
        active = span[~rows.closing[first:]]
        if len(active):
            done = np.concatenate([done, self._choose(active, first, logits, states)])
        if len(done):
            self._keep(_closed_up(len(rows), done))

    def _choose(self, active: NDArray[np.int64], first: int, logits: Tensor, states: Captured) -> NDArray[np.int64]:
        """One token for each active row. The rows that need nothing more."""
        rows = self._rows
        at = rows.count[active]
        chosen = choose(
            logits,
            active - first,
            rows.temperature[active],
            rows.top_k[active],
            rows.top_p[active],
            rows.uniform[active, at],
        )
        rows.ids[active, at] = chosen.ids
        rows.logprobs[active, at] = chosen.logprobs
        rows.logsumexps[active, at] = chosen.logsumexps
        rows.feed[active] = chosen.ids
        rows.count[active] += 1
        ended = np.isin(chosen.ids, self._eos)
        full = rows.count[active] >= rows.limit[active]
        stopped = np.zeros(len(active), np.bool_)
        for index in np.flatnonzero(rows.watched[active] & ~ended):
            stopped[index] = self._look(int(active[index]))
        finished = ended | full | stopped
        over = active[finished]
        for row, eos, stop in zip(over.tolist(), ended[finished], stopped[finished], strict=True):
            self._conclude(row, "eos" if eos else "stop" if stop else "length")
        return self._close(over, first, states)

    def _look(self, row: int) -> bool:
        rows, task = self._rows, self._rows.tasks[row]
        assert task.watch is not None
        ids = rows.ids[row, : rows.count[row]]
        context = task.prompt[-CONTEXT_TOKENS:]
        rows.tails[row], hit = task.watch.look(rows.tails[row], int(ids[-1]), context, ids.tolist())
        return hit

    def _close(self, over: NDArray[np.int64], first: int, states: Captured) -> NDArray[np.int64]:
        """Rows that are over: those that wait for a state feed one more token, the others are done."""
        hidden = [self._rows.tasks[row].request.hidden for row in over]
        positions = [spec.position if spec is not None else None for spec in hidden]
        waiting = np.array([position in ("fed_eos", "last") for position in positions], np.bool_)
        for row, position in zip(over, positions, strict=True):
            if position == "fed_eos":
                self._rows.feed[row] = self._eos[0]
        self._rows.closing[over[waiting]] = True
        done = over[~waiting]
        self._record_states(done, first, states)
        return done

    def _record_states(self, done: NDArray[np.int64], first: int, states: Captured) -> None:
        """Take the states of rows that are done, and hand over the tasks this completes."""
        tasks = self._rows.tasks
        for tap, state in states.items():
            rows = [int(row) for row in done if tasks[row].tap == tap]
            if rows:
                values = state[torch.tensor(rows, device=state.device) - first].float().cpu().numpy()
                for row, value in zip(rows, values, strict=True):
                    tasks[row].states[int(self._rows.sample[row])] = value
        for task in {id(tasks[row]): tasks[row] for row in done}.values():
            task.finish()

    def _conclude(self, row: int, finish: Finish) -> None:
        """Turn a row's tokens into its Generation."""
        rows, task = self._rows, self._rows.tasks[row]
        count = int(rows.count[row])
        ids = rows.ids[row, :count].tolist()
        if finish == "eos":
            ids.pop()
        context = task.prompt[-CONTEXT_TOKENS:]
        text = self._detokenizer.text(context, ids)
        shares = self._detokenizer.split(context, ids, text)
        cut = task.watch.cut(text) if task.watch is not None else None
        if cut is not None:
            text, finish = text[:cut], "stop"
        tokens, length = [], 0
        numbers = zip(shares, rows.logprobs[row].tolist(), rows.logsumexps[row].tolist(), ids, strict=False)
        for share, logprob, logsumexp, token in numbers:
            if cut is not None and length >= cut:
                break
            share = share if cut is None else share[: cut - length]
            length += len(share)
            tokens.append(Token(share, logprob, logsumexp, token))
        if not np.isfinite(rows.logprobs[row, :count]).all():
            task.job.finish(
                ModelUnavailable("the model's probabilities are not finite numbers; try --set model.dtype=float32.")
            )
        task.generations[int(rows.sample[row])] = Generation(text, tuple(tokens), finish, len(task.prompt), count)

    def _keep(self, rows: NDArray[np.int64]) -> None:
        self._rows.keep(rows)
        self._path.keep(torch.from_numpy(rows).to(self._network.device))


def _closed_up(count: int, done: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order in which rows go on: in place, the last ones filling the holes, so that few rows move."""
    stays = np.ones(count, np.bool_)
    stays[done] = False
    kept = count - len(done)
    order = np.arange(kept)
    order[~stays[:kept]] = np.flatnonzero(stays[kept:]) + kept
    return order


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says so. The CPU allocator reports a plain RuntimeError."""
    return not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def does_not_fit(what: str, tokens: int) -> ModelUnavailable:
    """The error when a request is too large for the device even by itself."""
    return ModelUnavailable(
        f"out of memory: {what} of a prompt of {tokens} tokens does not fit the device. "
        "Use a smaller model, a shorter prompt or --set model.dtype=bfloat16."
    )

"""The decode loop: samples of many requests advance together, join when there is room and leave when they are done.

Samples of one prompt are one row of the decode path, a branch, until they say different things.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.errors import ModelUnavailable, UsageError
from gnothi.models.engine.choice import choose
from gnothi.models.engine.passes import Network
from gnothi.models.engine.path import DecodePath, PrefillSteps
from gnothi.models.engine.rows import Rows, Task
from gnothi.models.engine.states import Captured, StateHook
from gnothi.models.engine.text import CONTEXT_TOKENS, Detokenizer, write_out
from gnothi.models.sampling import not_finite
from gnothi.types import Finish, Generation, Position

# Which continuations a step computes: samples of one prompt that have said the same so far, and say the same next, are one.
#
# A model that knows an answer says it twenty times in the same words; that costs one row, until the samples part.
Numbers = NDArray[np.int64]


def regroup(branch: Numbers, feed: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """New branches for samples that stand on ``branch`` (0 to ``count`` - 1) and feed ``feed``.

    The branch each new one continues (one may go on as several, or not at all), and each sample's new branch. Branches that
    go on stay where they are as far as possible: the first continuation takes its parent's place, others fill holes, then come
    at the end; holes that are left are filled from the end.
    """
    span = int(feed.max(initial=0)) + 1
    keys, of_sample = np.unique(branch * span + feed, return_inverse=True)
    parents = keys // span
    first = np.ones(len(parents), np.bool_)
    first[1:] = parents[1:] != parents[:-1]
    place = np.where(first, parents, -1)
    empty = np.ones(count, np.bool_)
    empty[parents] = False
    holes = np.flatnonzero(empty)
    more = np.flatnonzero(~first)
    filled = min(len(holes), len(more))
    place[more[:filled]] = holes[:filled]
    place[more[filled:]] = count + np.arange(len(more) - filled)
    beyond = np.flatnonzero(place >= len(parents))
    place[beyond] = holes[filled : filled + len(beyond)]
    order = np.empty(len(parents), np.int64)
    order[place] = parents
    return order, place[of_sample]


# The estimate of branches per sample: where it begins, and how fast it follows what is seen.
_FIRST, _PACE = 0.5, 0.25
# Until the first of many requests is answered, pieces of the others' prompts are so much smaller.
_FIRST_SHARE = 4
# For so many steps at most, what nobody waits for at once is not begun while first decisions are made.
_HELD = 16

Member = tuple[Task, list[int]]
"""A task and the numbers of some of its samples."""


@dataclass(slots=True)
class Limits:
    """About ``rows`` branches run at once, and ``tokens`` of keys and values are held at once. Of so many ``questions`` that
    follow each other, no call goes before another's because of its question."""

    rows: int
    tokens: int
    questions: int = 1


@dataclass(slots=True)
class _Coming:
    """Samples whose prompts are being read. ``wanted`` are the states that are asked for at their ends."""

    members: list[Member]
    prompts: list[tuple[int, ...]]
    wanted: frozenset[StateHook]
    pieces: PrefillSteps[tuple[Tensor, Captured]] | None = None


class Engine:
    """``eos`` are the ids that end a continuation, the first one is what ``fed_eos`` feeds."""

    def __init__(
        self, network: Network, path: DecodePath, detokenizer: Detokenizer, eos: Sequence[int], limits: Limits
    ) -> None:
        self._network = network
        self._path = path
        self._detokenizer = detokenizer
        self._eos = tuple(eos)
        self.limits = limits
        self._rows = Rows()
        self._branches = 0
        self._waiting: list[Member] = []  # in the order of their turns
        self._coming: _Coming | None = None
        self._sharing = _FIRST  # branches a sample comes to, of late
        self._answered = False  # something, since work came last to an idle engine
        self.steps = 0
        self.fed = 0
        self.advanced = 0

    @property
    def path(self) -> DecodePath:
        return self._path

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._coming or len(self._rows))

    def submit(self, task: Task) -> None:
        self._answered = self._answered and self.busy
        task.came = self.steps
        self._wait(task, list(range(task.request.n)))

    def _wait(self, task: Task, samples: list[int]) -> None:
        for long in (False, True):
            if mine := [sample for sample in samples if self._is_long(task, sample) is long]:
                insort(self._waiting, (task, mine), key=self._place)

    def _place(self, member: Member) -> tuple[int, bool]:
        job = member[0].job
        return job.turn // self.limits.questions, not job.hurried

    def _is_long(self, task: Task, sample: int) -> bool:
        return sample in task.outgrown or self._network.frequencies.is_long(len(task.prompt))

    def advance(self) -> None:
        """Read a piece of what there is room for, then decode one token per sample. Running out of memory halves the batch."""
        try:
            self._drop_settled()
            self._read()
            if len(self._rows):
                self._step()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            running = [(task, [sample]) for task, sample in zip(self._rows.tasks, self._rows.sample.tolist(), strict=True)]
            self._halve([*(self._coming.members if self._coming else ()), *running])

    def clear(self) -> None:
        """Forget everything that runs or waits."""
        self._waiting.clear()
        self._end()

    def _end(self) -> None:
        self._leave()
        self._rows = Rows()
        self._branches = 0
        self._path.clear()

    def _leave(self) -> None:
        """Read no further."""
        if self._coming and self._coming.pieces:
            self._coming.pieces.close()
        self._coming = None

    # --- admission -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """About a piece of the prompts that come next; samples whose prompts are read begin."""
        read, whole = self._network.read_tokens, self._network.piece
        try:
            while True:
                # A first answer shows that all is well: what comes after it hardly keeps it waiting.
                hurried = len(self._rows) and not self._answered
                self._network.piece = max(whole // _FIRST_SHARE, 1) if hurried else whole
                room = read + self._network.piece - self._network.read_tokens
                if room <= 0 or (self._coming is None and not self._begin(room)):
                    return
                self._read_on()
        finally:
            self._network.piece = whole

    def _read_on(self) -> None:
        coming = self._coming
        assert coming is not None
        self._network.wanted = coming.wanted
        if coming.pieces is None:
            coming.pieces = self._path.admit(coming.prompts)
        try:
            next(coming.pieces)
        except StopIteration as done:
            self._coming = None
            self._enter(coming, *done.value)

    def _begin(self, piece: int) -> bool:
        """Choose what is read next; False when nothing waits or there is no room."""
        members = self._next_members(piece)
        if not members:
            return False
        # The state at a prompt's end is asked for only by what may end with its first token.
        wanted = frozenset(
            hook
            for task, _ in members
            for hook, spec in zip(task.hooks, task.request.hidden, strict=True)
            if spec.position == "predicting"
        )
        self._coming = _Coming(members, list(dict.fromkeys(task.prompt for task, _ in members)), wanted)
        return True

    def _next_members(self, piece: int) -> list[Member]:
        """Samples to admit together, those of one prompt beside each other; of prompts that are new a piece, or one."""
        if not self._waiting or not self._path.open:
            return []
        # Short texts and long ones, where frequencies depend on that, take turns.
        if not len(self._rows):
            self._turn_to(self._is_long(self._waiting[0][0], self._waiting[0][1][0]))
        # So many samples come to about as many branches as there is room for.
        most = max(int(self.limits.rows / self._sharing), 1)
        cached = self._path.cached_tokens
        limit = int(self._rows.limit.max(initial=0))
        samples, reading = len(self._rows), 0
        hurry = any(task.job.hurried for task in self._rows.running)
        members: dict[tuple[int, ...], list[Member]] = {}
        while self._waiting and samples < most:
            task, numbers = self._waiting[0]
            if self._is_long(task, numbers[0]) is not self._network.frequencies.long:
                break
            if members and not self._path.together and task.prompt not in members:
                break
            if hurry and not task.job.hurried and self.steps - task.came < _HELD:
                break
            new = self._path.new_tokens(task.prompt) if task.prompt not in members else 0
            # Samples that start together share what they have in common, so a request is split only when it must be.
            taken = len(numbers) if len(numbers) <= self.limits.rows else min(len(numbers), most - samples)
            room = self._path.room(new)
            more = room if self._path.shares_prompts else len(task.prompt) * taken
            limit = max(limit, task.request.decoding.max_tokens)
            # Room is kept for the longest that all may get. Whoever comes first is admitted whatever the memory.
            if samples and cached + more + (samples + taken) * limit > self.limits.tokens:
                break
            if members and new and reading + new > piece:
                break
            members.setdefault(task.prompt, []).append((task, numbers[:taken]))
            hurry = hurry or task.job.hurried
            if numbers[0] == 0:
                task.job.begin()
            samples, cached, reading = samples + taken, cached + more, reading + new
            del numbers[:taken]
            if not numbers:
                del self._waiting[0]
        return [member for group in members.values() for member in group]

    def _turn_to(self, long: bool) -> None:
        if long is not self._network.frequencies.long:
            self._network.frequencies.long = long
            self._path.forget()  # what is held was read with the other frequencies

    def _enter(self, coming: _Coming, logits: Tensor, states: Captured) -> None:
        """Samples whose prompts have been read take their first tokens."""
        first, begun = self._branches, len(self._rows)
        places = {prompt: first + number for number, prompt in enumerate(coming.prompts)}
        self._rows.append(coming.members, [places[task.prompt] for task, _ in coming.members])
        self._branches += len(coming.prompts)
        self._take(np.arange(begun, len(self._rows)), first, logits, states)

    def _halve(self, members: Iterable[Member]) -> None:
        """Start every running sample again, fewer at a time. Draws depend on seeds alone, so results stay the same."""
        self._end()
        self._sharing = 1.0
        self._path.forget()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        again: dict[Task, set[int]] = {}
        for task, samples in members:
            again.setdefault(task, set()).update(samples)
        count = sum(map(len, again.values()))
        if count == 1:
            for task in again:
                task.job.finish(does_not_fit("one continuation", len(task.prompt)))
            return
        self.limits.rows = max(1, min(count, self.limits.rows) // 2)
        waiting, self._waiting = self._waiting, []
        for task, samples in [*((task, sorted(samples)) for task, samples in again.items()), *waiting]:
            self._wait(task, samples)

    def _drop_settled(self) -> None:
        gone = {task for task in self._rows.running if task.job.settled}
        if gone:
            self._keep(np.array([row for row, task in enumerate(self._rows.tasks) if task not in gone], np.int64))
        if any(task.job.settled for task, _ in self._waiting):
            self._waiting = [(task, samples) for task, samples in self._waiting if not task.job.settled]
        if self._coming and all(task.job.settled for task, _ in self._coming.members):
            self._leave()

    # --- decoding --------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        rows = self._rows
        self._network.wanted = frozenset(hook for task in rows.running for hook in task.hooks)
        feed = np.empty(self._branches, np.int64)
        feed[rows.branch] = rows.feed
        logits, states = self._path.step(torch.from_numpy(feed).to(self._network.device))
        self.steps += 1
        self.fed += self._branches
        self.advanced += len(rows)
        self._sharing += _PACE * (self._branches / len(rows) - self._sharing)
        self._take(np.arange(len(rows)), 0, logits, states)

    def _take(self, span: NDArray[np.int64], first: int, logits: Tensor, states: Captured) -> None:
        """Choose the next token of the samples ``span``; logits and states are those of the branches from ``first`` on."""
        rows = self._rows
        closing = rows.closing[span] > 0
        done = span[closing]
        self._record_states(done, "fed_eos", first, states)
        if not closing.all():
            done = np.concatenate([done, self._choose(span[~closing], first, logits, states)])
        stays = np.ones(len(rows), np.bool_)
        stays[done] = False
        self._keep(np.flatnonzero(stays))

    def _choose(self, active: NDArray[np.int64], first: int, logits: Tensor, states: Captured) -> NDArray[np.int64]:
        """One token for each active sample. The samples that need nothing more."""
        rows = self._rows
        temperature, top_k, top_p = rows.temperature[active], rows.top_k[active], rows.top_p[active]
        chosen = choose(logits, rows.branch[active] - first, temperature, top_k, top_p, rows.choices(active))
        rows.take(active, chosen.ids, chosen.logprobs, chosen.logsumexps)
        outgrown = self._outgrown(active)
        ended = np.isin(chosen.ids, self._eos)
        stopped = np.zeros(len(active), np.bool_)
        watched = np.flatnonzero((rows.stop[active] > 0) & ~ended)
        if len(watched):
            stopped[watched] = self._look(active[watched])
        finished = (ended | stopped | (rows.count[active] >= rows.limit[active])) & ~outgrown
        over = active[finished]
        for row, eos, stop in zip(over.tolist(), ended[finished].tolist(), stopped[finished].tolist(), strict=True):
            self._conclude(row, "eos" if eos else "stop" if stop else "length")
        done = self._close(over, first, states)
        return np.concatenate([done, active[outgrown]]) if outgrown.any() else done

    def _outgrown(self, active: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these samples have just become long texts, for which the model has other frequencies: they begin again."""
        rows, frequencies = self._rows, self._network.frequencies
        outgrown = np.zeros(len(active), np.bool_)
        if frequencies.limit is None or frequencies.long:
            return outgrown
        again: dict[Task, list[int]] = {}
        for place, row in enumerate(active.tolist()):
            task = rows.tasks[row]
            if frequencies.is_long(len(task.prompt) + int(rows.count[row])):
                outgrown[place] = True
                again.setdefault(task, []).append(int(rows.sample[row]))
        for task, samples in again.items():
            task.outgrown.update(samples)
            self._wait(task, samples)
        return outgrown

    def _is_unsettled(self, task: Task, sample: int, count: int) -> bool:
        """Whether it outgrew the length of short texts as one of these, and as a long one ends before."""
        return sample in task.outgrown and not self._network.frequencies.is_long(len(task.prompt) + count)

    def _look(self, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a stop string is complete in each of these samples, whose last token is new."""
        rows = self._rows
        # Samples that share a branch and a token have the same text.
        text = rows.branch[samples] * (int(rows.feed[samples].max()) + 1) + rows.feed[samples]
        _, one, of_sample = np.unique(
            text * (1 + int(rows.stop.max())) + rows.stop[samples], return_index=True, return_inverse=True
        )
        tails = np.empty(len(one), np.object_)
        hits = np.zeros(len(one), np.bool_)
        for at, row in enumerate(samples[one].tolist()):
            task = rows.tasks[row]
            assert task.watch is not None
            ids = rows.ids[row, : rows.count[row]].tolist()
            tails[at], hits[at] = task.watch.look(rows.tails[row], ids[-1], task.prompt[-CONTEXT_TOKENS:], ids)
        rows.tails[samples] = tails[of_sample]
        return hits[of_sample]

    def _close(self, over: NDArray[np.int64], first: int, states: Captured) -> NDArray[np.int64]:
        """Samples that are over: those that wait for a state feed one more token, the others are done."""
        rows = self._rows
        self._record_states(over, "predicting", first, states)
        wanted = [any(spec.position == "fed_eos" for spec in rows.tasks[row].request.hidden) for row in over.tolist()]
        waits = np.array(wanted, np.bool_)
        if waits.any():
            rows.close(over[waits], self._eos[0])
        done: NDArray[np.int64] = over[~waits]
        return done

    def _record_states(self, over: NDArray[np.int64], position: Position, first: int, states: Captured) -> None:
        """Take the states at which samples stand, those of this position, and hand over the tasks this completes."""
        rows, tasks = self._rows, self._rows.tasks
        by_hook: dict[StateHook, list[tuple[int, int]]] = {}
        for row in over.tolist():
            for number, spec in enumerate(tasks[row].request.hidden):
                if spec.position == position:
                    by_hook.setdefault(tasks[row].hooks[number], []).append((row, number))
        for hook, samples in by_hook.items():
            branches, of_sample = np.unique(rows.branch[[row for row, _ in samples]] - first, return_inverse=True)
            values = states[hook][torch.from_numpy(branches).to(states[hook].device)].float().cpu().numpy()
            for (row, number), place in zip(samples, of_sample.tolist(), strict=True):
                tasks[row].states[number][int(rows.sample[row])] = values[place]
        for task in {id(tasks[row]): tasks[row] for row in over.tolist()}.values():
            task.finish()
            self._answered |= task.job.settled

    def _conclude(self, row: int, finish: Finish) -> None:
        """Turn a sample's tokens into its Generation."""
        rows, task = self._rows, self._rows.tasks[row]
        count = int(rows.count[row])
        key = (self._network.frequencies.long, rows.ids[row, :count].tobytes())
        generation = task.texts.get(key)
        if generation is None:
            generation = task.texts[key] = self._generation(row, finish)
        if not np.isfinite(rows.logprobs[row, :count]).all():
            task.job.finish(not_finite())
        if self._is_unsettled(task, int(rows.sample[row]), count):
            task.job.finish(unsettled(len(task.prompt), self._network.frequencies.limit))
        task.generations[int(rows.sample[row])] = generation

    def _generation(self, row: int, finish: Finish) -> Generation:
        rows, task = self._rows, self._rows.tasks[row]
        count = int(rows.count[row])
        ids = rows.ids[row, :count].tolist()
        if finish == "eos":
            ids.pop()
        numbers = (rows.logprobs[row].tolist(), rows.logsumexps[row].tolist())
        text, tokens, cut = write_out(self._detokenizer, task.watch, task.prompt[-CONTEXT_TOKENS:], ids, *numbers)
        return Generation(text, tokens, "stop" if cut else finish, len(task.prompt), count)

    def _keep(self, samples: NDArray[np.int64]) -> None:
        """Go on with these samples only; those of one branch that feed the same token stay together, others part."""
        if len(samples) < len(self._rows):
            self._rows.keep(samples)
        if not len(samples) and not self._coming:
            self._end()
            return
        rows = self._rows
        order, rows.branch = regroup(rows.branch, rows.feed, self._branches)
        if len(order) != self._branches or (order != np.arange(len(order))).any():
            self._branches = len(order)
            self._path.keep(torch.from_numpy(order).to(self._network.device))


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says so. The CPU allocator reports a plain RuntimeError."""
    return not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def unsettled(tokens: int, limit: int | None) -> UsageError:
    """The error for a sample that is neither a short text nor a long one."""
    return UsageError(
        f"a prompt of {tokens} tokens: this model has other frequencies for texts of more than {limit} tokens, and a sample "
        "goes beyond that with those for short texts, but not with those for long ones, so it has no probability of its own. "
        "Use a shorter prompt, a longer one, or fewer tokens of reply."
    )


def does_not_fit(what: str, tokens: int) -> ModelUnavailable:
    """The error when a request is too large for the device even by itself."""
    return ModelUnavailable(
        f"out of memory: {what} of a prompt of {tokens} tokens does not fit the device. "
        "Use a smaller model, a shorter prompt or <--set model.dtype=bfloat16>."
    )

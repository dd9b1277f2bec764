"""What is known of runs while they are under way: calls done, what the whole will take, and what is odd about first answers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gnothi.errors import counted
from gnothi.events import Event, ModelCall, listen
from gnothi.report.numbers import lasting
from gnothi.report.warnings import warnings_of
from gnothi.runs.rows import Row
from gnothi.runs.runner import FIRST
from gnothi.stats.intervals import Interval, mean, mean_interval

if TYPE_CHECKING:
    from gnothi.session.execute import Run
    from gnothi.session.watch import Watch

PULSE = 1.0
"""Seconds between two looks."""
PATIENCE = 60.0
"""Seconds after which a few answers have to do for an estimate, and that are not worth one."""
FEW = 5
PACE = 0.25
"""By so much more or less than so far a machine may do in a second: other methods, longer texts."""
UNITS = (("GB", 1e9), ("MB", 1e6))


@dataclass(slots=True)
class Ahead:
    """Of one method: answers that were ``missing``, ``tokens`` and ``calls`` of each that came, and those ``done`` and
    ``made`` so far, for answers that did not come yet, too."""

    missing: int
    tokens: list[float]
    calls: list[float]
    done: float = 0.0
    made: int = 0

    @property
    def seen(self) -> bool:
        return len(self.tokens) >= min(self.missing, FIRST)

    def to_come(self, each: float) -> float:
        """Tokens that are left to do where an answer takes ``each``."""
        return max(self.missing * each - self.done, 0.0)


@dataclass(frozen=True, slots=True)
class Outlook:
    """``calls``, ``tokens`` and ``seconds`` that the answers still missing will take, ``between`` which the seconds lie if
    questions and machine stay alike; ``unseen`` are methods without enough answers, which are left out."""

    answers: int
    calls: float
    tokens: float
    seconds: float
    between: Interval
    unseen: Sequence[str]


def outlook(methods: dict[str, Ahead], elapsed: float) -> Outlook | None:
    """None where nothing can be said: no answers, no tokens, or nothing left."""
    known = {name: one for name, one in methods.items() if len(one.tokens) >= min(FEW, one.missing)}
    done = sum(one.done for one in methods.values())
    answers = sum(one.missing - len(one.tokens) for one in known.values())
    if not (answers and done and elapsed):
        return None
    whole, low, high, calls = 0.0, 0.0, 0.0, 0.0
    for one in known.values():
        each = mean(one.tokens) or 0.0
        least, most = mean_interval(one.tokens, share=False) or (each, each)
        for_all = [one.to_come(tokens) for tokens in (each, least, most)]
        whole, low, high = whole + for_all[0], low + for_all[1], high + for_all[2]
        calls += max(one.missing * (mean(one.calls) or 0.0) - one.made, 0.0)
    speed = done / elapsed
    between = Interval(low / speed * (1 - PACE), high / speed * (1 + PACE))
    return Outlook(answers, calls, whole, whole / speed, between, [name for name in methods if name not in known])


def seconds_left(methods: Mapping[str, Ahead], elapsed: float) -> float | None:
    """What the missing answers will take, by the tokens of those that came: what is under way counts, as finished answers alone
    would not. None where a method has too few answers, and where all was spent that is expected."""
    done = sum(one.done for one in methods.values())
    if not (done and elapsed) or any(len(one.tokens) < min(FEW, one.missing) for one in methods.values()):
        return None
    return sum(one.to_come(mean(one.tokens) or 0.0) for one in methods.values()) * elapsed / done or None


class Progress:
    """Hears of every call and every row of some runs and tells a ``watch`` what follows."""

    def __init__(self, runs: Sequence[Run], watch: Watch) -> None:
        self._watch = watch
        missing = Counter(_named(one, method) for one in runs for method, _ in one.missing)
        names = (_named(one, method.name) for one in runs for method in one.plan.methods)
        self._ahead = {name: Ahead(missing[name], [], []) for name in names}
        self._answers = Counter(_named(one, row.method) for one in runs for row in one.folder.rows.values() if not row.failed)
        self._calls: Counter[str] = Counter()
        self._read = 0
        self._began = time.monotonic()
        self._shown: Collection[str] = ()
        self._apart = False

    @contextlib.asynccontextmanager
    async def reading(self, read: Callable[[], int], apart: bool) -> AsyncIterator[None]:
        """Inside, the watch is told once a second. ``read`` says how many tokens of prompts the models have read themselves;
        ``apart``: calls are made in other processes, and counted when an answer arrives."""
        self._apart = apart
        ticking = asyncio.create_task(self._tick(read))
        try:
            yield
        finally:
            ticking.cancel()

    @contextlib.contextmanager
    def listening(self, run: Run, method: str) -> Iterator[None]:
        """Calls made inside are those of the method."""

        def on_event(event: Event) -> None:
            if isinstance(event, ModelCall):
                self._count(_named(run, method), 1, event.prompt_tokens, event.generated_tokens)

        with listen(on_event):
            yield

    def row(self, run: Run, row: Row) -> None:
        """One more is finished."""
        name, cost = _named(run, row.method), row.cost
        if self._apart:
            self._count(name, int(cost["model_calls"]), int(cost["prompt_tokens"]), int(cost["generated_tokens"]))
        self._ahead[name].tokens.append(cost["prompt_tokens"] + cost["generated_tokens"])
        self._ahead[name].calls.append(cost["model_calls"])
        self._watch.row(row, run.label)
        self._answers[name] += 1
        questions = len(run.plan.questions.questions)
        if self._answers[name] == FIRST < questions:
            rows = [one for one in run.folder.rows.values() if one.method == row.method]
            for warning in warnings_of(row.method, rows, gated=not run.held):
                self._watch.warn(f"{name}, after the first {FIRST} questions: {warning}")

    def _count(self, name: str, calls: int, prompt: int, generated: int) -> None:
        self._calls[name] += calls
        self._read += prompt
        self._ahead[name].done += prompt + generated
        self._ahead[name].made += calls

    async def _tick(self, read: Callable[[], int]) -> None:
        while True:
            await asyncio.sleep(PULSE)
            left = seconds_left(self._ahead, time.monotonic() - self._began)
            self._watch.pulse(max(read(), self._read), self._calls, left)
            self._look_ahead()

    def _look_ahead(self) -> None:
        """What the whole will take: when every method has answered its first questions; before, of some, if that takes long."""
        elapsed = time.monotonic() - self._began
        if len(self._shown) == len(self._ahead) or not (elapsed >= PATIENCE or all(one.seen for one in self._ahead.values())):
            return
        found = outlook(self._ahead, elapsed)
        if found is None or (found.unseen and self._shown):
            return
        self._shown = self._ahead.keys() - found.unseen
        if found.seconds >= PATIENCE:
            self._watch.info(_in_words(found, peak_memory()))


def _in_words(found: Outlook, memory: Collection[tuple[str, int]]) -> str:
    low, high = (lasting(seconds) for seconds in found.between)
    left_out = f"; not counted, for want of answers: {', '.join(found.unseen)}" if found.unseen else ""
    held = "".join(f"; peak {what} so far {_bytes(most)}" for what, most in memory)
    return (
        f"still to come: about {lasting(found.seconds)} ({low} to {high}), {found.calls:,.0f} model calls and "
        f"{found.tokens:,.0f} tokens for {counted(found.answers, 'answer')}{left_out}{held}"
    )


def peak_memory() -> list[tuple[str, int]]:
    """The most bytes that this process held, and on a GPU; nothing where the system does not tell."""
    found = []
    with contextlib.suppress(ImportError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        found.append(("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found.append(("GPU memory", torch.cuda.max_memory_reserved()))
    return found


def _bytes(count: int) -> str:
    unit, size = next(((unit, size) for unit, size in UNITS if count >= size), UNITS[-1])
    return f"{count / size:.1f} {unit}"


def _named(run: Run, method: str) -> str:
    return run.label or method
